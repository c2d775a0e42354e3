import type { JsonObject } from '../../../src/protocol/json.ts';
import {
  PushEvent,
  type PushMember,
  type PushRoomFacts,
  type PushSubject,
} from '../../../src/protocol/push-rules/push-event.ts';

export const ALICE: PushMember = { userId: '@alice:example.org', displayName: 'Alice' };
export const ROOM: PushRoomFacts = { memberCount: 10, senderMayNotify: () => false };

/** A text message of Bob's, with other members where they are given. */
export function subject(more: Partial<PushSubject> = {}): PushSubject {
  return {
    eventId: '$event',
    roomId: '!room:example.org',
    type: 'm.room.message',
    stateKey: undefined,
    sender: '@bob:example.org',
    content: { msgtype: 'm.text', body: 'Hello' },
    originServerTs: 1_700_000_000_000,
    redacts: undefined,
    ...more,
  };
}

export const message = (content: JsonObject): PushSubject =>
  subject({ content: { msgtype: 'm.text', ...content } });

export const pushEvent = (more: Partial<PushSubject> = {}, room: Partial<PushRoomFacts> = {}): PushEvent =>
  new PushEvent(subject(more), { ...ROOM, ...room });
