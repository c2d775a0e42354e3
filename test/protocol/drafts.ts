import type { EventDraft, RoomVersion } from '../../src/protocol/index.ts';

/** A draft of a message by a user of example.org, valid in the room version. */
export function draftFor(version: RoomVersion): EventDraft {
  const originChoosesIds = version.eventId === 'origin';
  return {
    type: 'm.room.message',
    sender: '@alice:example.org',
    content: { msgtype: 'm.text', body: 'Hello' },
    roomId:
      version.roomId === 'origin' ? '!room:example.org' : '!Nhcu5BS-UMnFX7hBVfVSoXiD7OgH6iRT-xyIuqDnpYQ',
    depth: 5,
    originServerTs: 1_000_000,
    authEventIds: ['$auth:example.org'],
    prevEventIds: ['$before:example.org'],
    eventId: originChoosesIds ? '$0:example.org' : undefined,
    referenceHash: originChoosesIds ? (id) => `hash of ${id}` : undefined,
  };
}
