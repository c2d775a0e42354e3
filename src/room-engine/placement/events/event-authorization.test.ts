import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ben, ReferenceRoom } from '../../../../test/support/rooms/reference-room.ts';
import { roomEventOf } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { rejectionByAuthEvents } from './event-authorization.ts';

for (const version of ['1', '6', '10']) {
  it(`rejectionByAuthEvents rejects an event with a type of more than 255 bytes, in room version ${version}`, () => {
    const room = new ReferenceRoom(version);
    const { event } = room.get(room.say(ben));
    const auth = new Map(
      event.authEventIds.map((id) => [id, { event: room.get(id).event, rejected: false } as StoredEvent]),
    );
    const rejectionOf = (type: string) =>
      rejectionByAuthEvents(roomEventOf({ ...event.pdu, type }, event.version, event.eventId), auth);
    assert.equal(rejectionOf('é'.repeat(127)), undefined);
    assert.equal(rejectionOf('é'.repeat(128)), 'its type has more than 255 bytes');
  });
}
