"""Exact inner-product search over unit vectors (cosine), in faiss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memx.errors import MemxError

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]


class DenseIndex:
    """Vectors by position, in the order they were added.

    Args:
        index: a faiss index read from a file; None starts an empty one.

    Raises:
        MemxError: the index has another dimension.
    """

    def __init__(self, dimension: int, index: Any = None) -> None:
        import faiss

        self.faiss_index = index if index is not None else faiss.IndexFlatIP(dimension)
        if self.faiss_index.d != dimension:
            raise MemxError(
                f"the faiss index holds vectors of dimension {self.faiss_index.d}, the embedder gives {dimension}",
                "Rebuild the cache with --rebuild-cache, or use the embedder it was made with.",
            )

    def __len__(self) -> int:
        return int(self.faiss_index.ntotal)

    def add(self, vectors: Matrix) -> None:
        """Append unit vectors, shape ``(n, dimension)``."""
        import numpy as np

        if vectors.ndim != 2 or vectors.shape[1] != self.faiss_index.d:
            raise MemxError(f"vectors of shape {vectors.shape} do not fit an index of dimension {self.faiss_index.d}")
        self.faiss_index.add(np.ascontiguousarray(vectors, dtype=np.float32))

    def search(self, query: Matrix, limit: int) -> tuple[list[int], list[float]]:
        """Positions and cosines of the nearest ``limit`` vectors, best first."""
        limit = min(limit, len(self))
        if limit < 1:
            return [], []
        import faiss

        # One query gains nothing from threads that wait for each other; the setting holds for the calling thread.
        faiss.omp_set_num_threads(1)
        cosines, positions = self.faiss_index.search(query.reshape(1, -1), limit)
        return positions[0].tolist(), cosines[0].tolist()

    def similarities(self, query: Matrix) -> Matrix:
        """The cosine of every vector with the query, shape ``(len(self),)``."""
        import faiss
        import numpy as np

        size, dimension = len(self), int(self.faiss_index.d)
        scores: Matrix = np.zeros(size, dtype=np.float32)
        if size:
            asked = np.ascontiguousarray(query.reshape(-1), dtype=np.float32)
            flat = self.faiss_index.get_xb()
            faiss.fvec_inner_products_ny(faiss.swig_ptr(scores), faiss.swig_ptr(asked), flat, dimension, size)  # type: ignore[attr-defined]
        return scores

    def rows(self, positions: list[int]) -> Matrix:
        """Copies of some vectors, shape ``(len(positions), dimension)``."""
        return self.vectors()[positions]

    def vectors(self) -> Matrix:
        """All vectors, shape ``(len(self), dimension)``: a view that the next :meth:`add` makes invalid."""
        import faiss
        import numpy as np

        size, dimension = len(self), int(self.faiss_index.d)
        if not size:
            return np.zeros((0, dimension), dtype=np.float32)
        flat: Matrix = faiss.rev_swig_ptr(self.faiss_index.get_xb(), size * dimension)
        return flat.reshape(size, dimension)
