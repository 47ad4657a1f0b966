from weakspot.data.pictures import Pictures as Pictures
