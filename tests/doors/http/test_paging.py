"""Listings come whole, or by pages where a client asks for that."""

import httpx
import pytest

from goqueue.edge.http.parts.paging import PAGE_COUNT_MAX, names_in_page


def listed(client: httpx.Client, path: str, rows: str, **query: object) -> list[list[str]]:
    """The pages of a listing, each as its names."""
    pages = []
    after: str | None = None
    while True:
        params = {**query, **({} if after is None else {"after": after})}
        reply = client.get(path, params=params).raise_for_status().json()  # type: ignore[arg-type]  # plain values
        pages.append([name_of(row) for row in reply[rows]])
        after = reply.get("next")
        if after is None:
            return pages


def name_of(row: str | dict[str, str]) -> str:
    if isinstance(row, str):
        return row
    return next(row[field] for field in ("transactional_id", "id", "name") if field in row)


@pytest.fixture
def names(client: httpx.Client) -> list[str]:
    """Five topics, five groups and five tenants of the same names."""
    names = [f"name{number}" for number in range(5)]
    for name in names:
        client.post("/topics", json={"name": name}).raise_for_status()
        join = {"client_id": "c", "topics": [name]}
        client.post(f"/groups/{name}/join", json=join).raise_for_status()
        client.post("/admin/tenants", json={"id": name, "name": name}).raise_for_status()
    return names


@pytest.mark.parametrize(
    ("path", "rows"), [("/topics", "topics"), ("/groups", "details"), ("/admin/tenants", "tenants")]
)
def test_a_listing_is_whole_without_a_limit_and_the_same_by_pages(
    client: httpx.Client, names: list[str], path: str, rows: str
) -> None:
    [whole] = listed(client, path, rows)
    assert [name for name in whole if not name.startswith("__")] == names

    pages = listed(client, path, rows, limit=2)
    assert [name for page in pages for name in page] == whole
    assert {len(page) for page in pages[:-1]} == {2}


@pytest.fixture
def kept(client: httpx.Client) -> list[str]:
    """Five transactional ids, five sinks and five schedules of the same names."""
    names = [f"name{number}" for number in range(5)]
    client.post("/topics", json={"name": "orders", "num_partitions": 1}).raise_for_status()
    for name in reversed(names):
        client.post("/producers/init", json={"transactional_id": name}).raise_for_status()
        client.post(f"/sinks/{name}/generations").raise_for_status()
        schedule = {"name": name, "cron": "0 9 * * *", "message": {"value": "wake up"}}
        client.post("/topics/orders/schedules", json=schedule).raise_for_status()
    return names


@pytest.mark.parametrize(
    ("path", "rows", "query"),
    [
        ("/transactions", "transactions", {"state": "all"}),
        ("/sinks", "sinks", {}),
        ("/topics/orders/schedules", "schedules", {}),
    ],
)
def test_so_are_listings_of_what_clients_leave_behind(
    client: httpx.Client, kept: list[str], path: str, rows: str, query: dict[str, str]
) -> None:
    assert listed(client, path, rows, **query) == [kept]
    assert listed(client, path, rows, limit=2, **query) == [kept[:2], kept[2:4], kept[4:]]
    assert listed(client, path, rows, limit=5, **query) == [kept]
    assert client.get(path, params={"limit": 0, **query}).status_code == 400


def test_a_page_goes_on_behind_a_name_that_has_gone(client: httpx.Client, names: list[str]) -> None:
    first = client.get("/topics", params={"limit": 2}).json()
    client.delete("/topics/name1").raise_for_status()

    assert first["next"] == "name1"
    assert client.get("/topics", params={"after": "name1"}).json() == {"topics": names[2:]}


def test_a_limit_of_nothing_is_refused(client: httpx.Client) -> None:
    refused = client.get("/groups", params={"limit": 0})

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


def test_no_page_has_more_than_the_most() -> None:
    names = [f"{number:05}" for number in range(PAGE_COUNT_MAX + 1)]

    page = names_in_page(names, 10**9, None)

    assert (len(page.rows), page.next) == (PAGE_COUNT_MAX, f"{PAGE_COUNT_MAX - 1:05}")
    assert names_in_page(names, 10**9, page.next) == ([f"{PAGE_COUNT_MAX:05}"], None)
