"""Pages through the history of a room in both directions, and reads the context of an event."""

import nio

from session import PASSWORD, Session, ok, run

COUNT = 45


async def pages(client, room, start, direction, limit):
    """Returns the bodies of all messages from a token on, in one direction."""
    bodies = []
    while start:
        page = ok(await client.room_messages(room, start, direction=direction, limit=limit))
        assert len(page.chunk) <= limit, len(page.chunk)
        bodies += [event.body for event in page.chunk if isinstance(event, nio.RoomMessageText)]
        start = page.end
        if not page.chunk:
            break
    return bodies


async def timeline(alice):
    room = ok(await alice.client.room_create()).room_id
    ids = [await alice.send(room, f"message {number}") for number in range(COUNT)]
    expected = [f"message {number}" for number in range(COUNT)]

    device = Session(alice.client.homeserver, alice.user_id)
    ok(await device.client.login(PASSWORD))
    first = ok(await device.client.sync(timeout=0, sync_filter={"room": {"timeline": {"limit": 5}}}))
    seen = [event.body for _, event in device.events if isinstance(event, nio.RoomMessageText)]
    assert seen == expected[-5:], seen
    start = first.rooms.join[room].timeline.prev_batch
    back = await pages(device.client, room, start, nio.MessageDirection.back, 7)
    assert back[::-1] + seen == expected, back

    context = ok(await device.client.room_context(room, ids[20], limit=10))
    before = [event.body for event in context.events_before]
    after = [event.body for event in context.events_after]
    assert context.event.body == expected[20], context.event
    assert before[::-1] == expected[20 - len(before) : 20] and before, before
    assert after == expected[21 : 21 + len(after)] and after, after
    onwards = await pages(device.client, room, context.end, nio.MessageDirection.front, 7)
    assert after + onwards == expected[21:], onwards
    await device.client.close()


run(timeline, "alice")
