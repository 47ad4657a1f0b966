"""Root causes, clusters of errors and labelling, for the viewer."""

from fastapi import APIRouter

from weakspot.causes import cause_pages, cluster_pages, label_pages, nearest_pages

router = APIRouter()
router.include_router(cause_pages.router)
router.include_router(cluster_pages.router)
router.include_router(label_pages.router)
router.include_router(nearest_pages.router)
