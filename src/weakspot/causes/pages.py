"""Root-cause clusters and labelling, for the viewer."""

from fastapi import APIRouter

from weakspot.causes import cluster_pages, label_pages

router = APIRouter()
router.include_router(cluster_pages.router)
router.include_router(label_pages.router)
