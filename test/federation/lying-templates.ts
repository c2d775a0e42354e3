import type { JsonObject } from '../../src/protocol/index.ts';

/** What a server may make of the template that it was asked for, and nobody should sign. */
export const lies: readonly [what: string, change: (event: JsonObject) => JsonObject][] = [
  ['of another type', (event) => ({ ...event, type: 'm.room.power_levels', state_key: '' })],
  ['of another room', (event) => ({ ...event, room_id: '!other:a.test' })],
  ['by another sender', (event) => ({ ...event, sender: '@admin:a.test' })],
  ['about another user', (event) => ({ ...event, state_key: '@admin:a.test' })],
  ['with previous events that are none', (event) => ({ ...event, prev_events: ['x', { a: 1 }] })],
];
