// Images to label and the labels they have: which comes next, how far a cluster is, what a typed text may mean.

export class Labels {
  /** `images`: columns `id, cluster, distance, label`, each cluster's images in the order in which they are looked at. */
  constructor({ id, cluster, distance, label }) {
    Object.assign(this, { id, cluster, distance, label: [...label] });
    this.places = new Map(id.map((name, place) => [name, place]));
    this.clusters = [...Map.groupBy(cluster.keys(), (place) => cluster[place])].map(([number, places]) => ({ number, places }));
    this.order = this.clusters.flatMap(({ places }) => places);
    this.rank = new Map(this.order.map((place, rank) => [place, rank]));
  }

  get count() {
    return this.id.length;
  }

  /** Labels by id, null for none. */
  set(labels) {
    for (const [name, label] of Object.entries(labels)) if (this.places.has(name)) this.label[this.places.get(name)] = label;
  }

  of(names) {
    return Object.fromEntries(names.map((name) => [name, this.label[this.places.get(name)]]));
  }

  done(places = this.order) {
    return places.reduce((sum, place) => sum + (this.label[place] !== null), 0);
  }

  /** Which of the clusters an image belongs to. */
  clusterAt(place) {
    return this.clusters.findIndex(({ number }) => number === this.cluster[place]);
  }

  /** The image that comes `by` after this one; the first or last where there is none. */
  stepped(place, by) {
    const rank = this.rank.get(place) + by;
    return this.order[Math.min(this.order.length - 1, Math.max(0, rank))];
  }

  /** The next image without a label, around the end to the beginning; undefined where all have one. */
  unlabelled(place) {
    const from = this.rank.get(place) + 1;
    return [...this.order.slice(from), ...this.order.slice(0, from)].find((one) => this.label[one] === null);
  }

  /** Up to `count` images of the same cluster around one. */
  around(place, count) {
    const { places } = this.clusters[this.clusterAt(place)];
    const first = Math.max(0, Math.min(places.indexOf(place) - Math.floor(count / 2), places.length - count));
    return places.slice(first, first + count);
  }
}

/** The classes that a typed text may mean: those that begin with it, then those that hold it; a number is a class's place. */
export function meant(classes, text) {
  const typed = text.trim().toLowerCase();
  if (!typed) return classes;
  const lower = classes.map((name) => name.toLowerCase());
  const kinds = [(name) => name === typed, (name) => name.startsWith(typed), (name) => name.includes(typed)];
  const found = kinds.flatMap((fits) => classes.filter((_, place) => fits(lower[place])));
  const numbered = /^\d+$/.test(typed) && Number(typed) < classes.length ? [classes[Number(typed)]] : [];
  return [...new Set([...found, ...numbered])];
}
