"""Invite, messages, reply, typing, receipts, redaction, room name and leave between two users."""

import nio

from session import ok, refused, run


async def conversation(alice, bob):
    room = ok(await alice.client.room_create(name="By the fire", preset=nio.RoomPreset.private_chat)).room_id
    ok(await alice.client.room_invite(room, bob.user_id))
    invitation = await bob.eventually("an invitation", lambda: bob.client.invited_rooms.get(room))
    assert invitation.name == "By the fire", invitation.name
    assert invitation.inviter == alice.user_id, invitation.inviter
    ok(await bob.client.join(room))
    await bob.eventually("the room", lambda: room in bob.client.rooms)
    await alice.eventually("the room", lambda: room in alice.client.rooms)
    await alice.eventually("bob", lambda: bob.user_id in alice.client.rooms[room].users)
    assert room in ok(await bob.client.joined_rooms()).rooms
    members = ok(await bob.client.joined_members(room)).members
    assert {member.user_id for member in members} == {alice.user_id, bob.user_id}, members

    question = await alice.send(room, "Is it warm over there?")
    received = await bob.event(question)
    assert (received.sender, received.body) == (alice.user_id, "Is it warm over there?"), received
    answer = await bob.send(room, "Very.", **{"m.relates_to": {"m.in_reply_to": {"event_id": question}}})
    reply = await alice.event(answer)
    relation = reply.source["content"]["m.relates_to"]
    assert relation == {"m.in_reply_to": {"event_id": question}}, reply.source

    ok(await bob.client.room_typing(room, True, timeout=20000))
    await alice.eventually("bob typing", lambda: bob.user_id in alice.client.rooms[room].typing_users)
    ok(await bob.client.room_typing(room, False))
    await alice.eventually("bob not typing", lambda: bob.user_id not in alice.client.rooms[room].typing_users)
    ok(await bob.client.room_read_markers(room, question, question))
    await alice.eventually(
        "bob's receipt",
        lambda: (receipt := alice.client.rooms[room].read_receipts.get(bob.user_id)) and receipt.event_id == question,
    )

    ok(await alice.client.room_redact(room, question, reason="second thoughts"))
    redaction = await bob.eventually(
        "the redaction",
        lambda: next((event for _, event in bob.events if isinstance(event, nio.RedactionEvent)), None),
    )
    assert redaction.redacts == question, redaction
    redacted = ok(await bob.client.room_get_event(room, question)).event
    assert isinstance(redacted, nio.RedactedEvent), redacted

    ok(await alice.client.room_put_state(room, "m.room.name", {"name": "At the hearth"}))
    await bob.eventually("the name of the room", lambda: bob.client.rooms[room].name == "At the hearth")
    name = ok(await bob.client.room_get_state_event(room, "m.room.name")).content
    assert name == {"name": "At the hearth"}, name

    ok(await bob.client.room_leave(room))
    await alice.eventually("bob to have left", lambda: bob.user_id not in alice.client.rooms[room].users)
    await bob.eventually("the left room", lambda: room in bob.left_rooms)
    ok(await bob.client.room_forget(room))
    refused(await bob.client.join(room), "M_FORBIDDEN")


run(conversation, "alice", "bob")
