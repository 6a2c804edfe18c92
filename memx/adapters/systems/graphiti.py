"""``graphiti``: a temporal knowledge graph whose edges are facts with a time from and until which they are true."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

from memx.adapters.calls import Calls
from memx.adapters.contract import MemoryAdapter
from memx.adapters.options import Option, read_options
from memx.adapters.packages import load_package
from memx.adapters.paging import Page, pages
from memx.adapters.provenance import said, said_at, sendable, with_zone
from memx.adapters.refusals import Refusals
from memx.adapters.system_models import MODEL_OPTIONS, described, llm_address, need_llm, silence
from memx.adapters.systems.graphiti_drivers import (
    BACKENDS,
    EMBEDDED,
    Opened,
    absent,
    address,
    check,
    open_driver,
    remove_files,
)
from memx.adapters.systems.graphiti_edges import facts_of, retrieved_of, turns_of
from memx.model import QueryResult, Session, Snapshot, Turn

T = TypeVar("T")
_RECIPES = {
    "rrf": "EDGE_HYBRID_SEARCH_RRF",
    "mmr": "EDGE_HYBRID_SEARCH_MMR",
    "episode_mentions": "EDGE_HYBRID_SEARCH_EPISODE_MENTIONS",
}


@dataclass(frozen=True, slots=True)
class _Graph:
    """The graph of one entity, opened."""

    opened: Opened
    graphiti: Any

    async def close(self) -> None:
        """Release the database and the connections to the model."""
        await self.graphiti.llm_client.client.close()
        await self.opened.close()


class Graphiti(MemoryAdapter):
    """graphiti-core 0.31: each turn is an episode; a model makes entities and dated edges of it.

    The graph is embedded (kuzu, or falkordblite on Python 3.12), or lies on a FalkorDB or Neo4j server.
    """

    name = "graphiti"
    exports = (
        "every edge with the turns it came from",
        "edges that ended: invalid_at and expired_at, linked to the edge that begins when they end",
    )
    cannot_see = (
        "which edge ended another: it is derived from their times, ends and names",
        "summaries of entities, communities, and turns from which no edge was made",
    )
    OPTIONS: ClassVar[Mapping[str, Any]] = {
        "backend": Option("kuzu", "where the graph lies", choices=BACKENDS),
        "path": Option("", "kuzu, falkordblite: a folder to keep graphs in; empty keeps none"),
        "url": Option("", "falkordb, neo4j: address of the server", env=("GRAPHITI_URL", "NEO4J_URI")),
        "user": Option("", "falkordb, neo4j: user", env="NEO4J_USER"),
        "password": Option("", "falkordb, neo4j: password", env="NEO4J_PASSWORD", secret=True),
        "database": Option("neo4j", "neo4j: name of the database"),
        "reranker": Option("rrf", "how words and vectors are joined", choices=tuple(_RECIPES)),
        "min_score": Option(0.6, "lowest cosine of an edge that vectors find", least=0),
        "current_only": Option(False, "search only edges that have not ended"),
        "validity": Option(True, "write from when to when it is true behind each edge that is found"),
        "structured": Option("json_schema", "how JSON is asked of the model", choices=("json_schema", "json_object")),
        "small_llm": Option("", "the chat model for simpler prompts; empty for the same"),
        "page_size": Option(500, "edges in one page", least=1),
        **MODEL_OPTIONS,
    }

    def __init__(self, **options: Any) -> None:
        self.options = read_options(self.name, self.OPTIONS, options)
        backend = self.options["backend"]
        silence("graphiti_core", "neo4j", "httpx", GRAPHITI_TELEMETRY_ENABLED="false")
        load_package(self.name, "graphiti_core", "graphiti-core", versions=("0.31",))
        check(backend)
        need_llm(self.name, self.OPTIONS, self.options)
        self.keeps_data = backend not in EMBEDDED or bool(self.options["path"])
        self.calls = Calls(self.name, key="OPENAI_API_KEY", where=llm_address(self.options))
        self._database = Calls(self.name, key="NEO4J_PASSWORD", where=address(self.options))
        self._refusals = Refusals(self.note)
        self._loop: asyncio.Runner | None = None
        self._graphs: dict[str, _Graph] = {}

    def describe(self) -> Mapping[str, Any]:
        """Version, database and models."""
        from importlib.metadata import version

        shown = {name: self.options[name] for name in ("backend", "reranker", "min_score", "current_only")}
        return {"version": version("graphiti-core"), **shown, **described(self.options)}

    def ingest_session(self, session: Session) -> None:
        graph = self._graph(session.entity_id)
        self.calls.begin(session)
        for turn in session.turns:
            # A failed episode leaves nothing behind; its requests to the model are repeated inside.
            with self._refusals.noted():
                self.calls.write(f"add turn {turn.turn_id}", partial(self._add, graph, session, turn))
            self.calls.stored()
        self.calls.end()

    def query(self, query: str, entity_id: str, top_k: int) -> QueryResult:
        if entity_id not in self._graphs and absent(self.options, entity_id):
            return QueryResult(())
        graph, reranker = self._graph(entity_id), self.options["reranker"]
        search = partial(graph.graphiti.search_, sendable(query), self._search_config(top_k), group_ids=[entity_id])
        filters = self._search_filter()
        found = self._database.read("search", lambda: self._run(search(search_filter=filters)))
        scores = [*found.edge_reranker_scores, *[None] * len(found.edges)]
        edges = list(zip(found.edges, scores, strict=False))[:top_k]
        turn_of = self._turns_of(graph, {episode for edge, _ in edges for episode in edge.episodes})
        facts = (retrieved_of(edge, score, reranker, self.options["validity"], turn_of) for edge, score in edges)
        return QueryResult(tuple(facts))

    def export_state(self, entity_id: str) -> Snapshot:
        if entity_id not in self._graphs and absent(self.options, entity_id):
            return Snapshot(entity_id, ())
        graph = self._graph(entity_id)
        edges = self._listed(graph, "edges", importlib.import_module("graphiti_core.edges").EntityEdge, entity_id)
        nodes = importlib.import_module("graphiti_core.nodes")
        turn_of = turns_of(self._listed(graph, "episodes", nodes.EpisodicNode, entity_id))
        return Snapshot(entity_id, tuple(facts_of(edges, turn_of)))

    def reset(self, entity_id: str) -> None:
        if self.options["backend"] in EMBEDDED:
            if entity_id in self._graphs:
                self._run(self._graphs.pop(entity_id).close())
            remove_files(self.options, entity_id)
            return
        graph = self._graph(entity_id)
        self._database.write("delete the graph", lambda: self._run(self._clear(graph, entity_id)), repeat="always")

    def close(self) -> None:
        for graph in self._graphs.values():
            self._run(graph.close())
        self._graphs.clear()
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    # ----------------------------------------------------------------------------------------------------------- graph

    def _graph(self, entity_id: str) -> _Graph:
        if entity_id not in self._graphs:
            core = importlib.import_module("graphiti_core")
            from memx.adapters.systems.graphiti_models import chat_model, embedding_model, no_reranker

            def opened() -> Opened:
                database = open_driver(self.options, entity_id)
                self._run(database.prepare())
                return database

            database = self._database.write("open the graph", opened)
            graphiti = core.Graphiti(
                graph_driver=database.driver,
                llm_client=chat_model(self.options),
                embedder=embedding_model(self.options),
                cross_encoder=no_reranker(),
            )
            self._graphs[entity_id] = _Graph(database, graphiti)
        return self._graphs[entity_id]

    def _add(self, graph: _Graph, session: Session, turn: Turn) -> None:
        nodes = importlib.import_module("graphiti_core.nodes")
        clock = importlib.import_module("graphiti_core.utils.datetime_utils")
        at = said_at(session, turn)
        episode = graph.graphiti.add_episode(
            name=turn.turn_id,
            episode_body=said(turn),
            source_description=f"session {session.session_id}",
            reference_time=with_zone(at) if at else clock.utc_now(),
            source=nodes.EpisodeType.message,
            group_id=session.entity_id,
        )
        self._run(episode)

    def _search_config(self, top_k: int) -> Any:
        recipes = importlib.import_module("graphiti_core.search.search_config_recipes")
        config = getattr(recipes, _RECIPES[self.options["reranker"]]).model_copy(deep=True)
        config.limit = top_k
        config.edge_config.sim_min_score = self.options["min_score"]
        return config

    def _search_filter(self) -> Any:
        filters = importlib.import_module("graphiti_core.search.search_filters")
        if not self.options["current_only"]:
            return filters.SearchFilters()
        unset = filters.DateFilter(comparison_operator=filters.ComparisonOperator.is_null)
        return filters.SearchFilters(invalid_at=[[unset]], expired_at=[[unset]])

    def _listed(self, graph: _Graph, what: str, kind: Any, entity_id: str) -> list[Any]:
        """Every edge or episode of the group, page by page."""
        errors = importlib.import_module("graphiti_core.errors")
        size = self.options["page_size"]

        async def page(cursor: str | None) -> list[Any]:
            try:
                found: list[Any] = await kind.get_by_group_ids(
                    graph.opened.driver, [entity_id], limit=size, uuid_cursor=cursor
                )
            except (errors.GroupsEdgesNotFoundError, errors.GroupsNodesNotFoundError):
                return []
            return found

        def fetch(cursor: str | None) -> Page[Any]:
            rows = self._database.read(f"list {what}", lambda: self._run(page(cursor)))
            return Page(rows, rows[-1].uuid if len(rows) == size else None)

        return list(pages(self.name, what, fetch, key=lambda row: row.uuid))

    def _turns_of(self, graph: _Graph, episodes: set[str]) -> dict[str, str]:
        if not episodes:
            return {}
        nodes = importlib.import_module("graphiti_core.nodes")
        wanted = sorted(episodes)
        read = partial(nodes.EpisodicNode.get_by_uuids, graph.opened.driver, wanted)
        return turns_of(self._database.read("read episodes", lambda: self._run(read())))

    async def _clear(self, graph: _Graph, entity_id: str) -> None:
        if self.options["backend"] == "falkordb":  # there, a group is a graph of its own
            if entity_id in await graph.opened.driver.client.list_graphs():
                await graph.opened.driver.client.select_graph(entity_id).delete()
            return
        work = importlib.import_module("graphiti_core.utils.maintenance.graph_data_operations")
        await work.clear_data(graph.opened.driver, group_ids=[entity_id])

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        # All calls of an adapter come from one thread, and what the drivers opened belongs to one loop.
        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(work)
