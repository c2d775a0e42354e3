import type { JsonObject } from '../../src/protocol/index.ts';

/** Changes to a make_join, make_knock or make_leave template, after which no server may sign an event made from it. */
export const falseTemplates: readonly [what: string, change: (event: JsonObject) => JsonObject][] = [
  ['of another type', (event) => ({ ...event, type: 'm.room.power_levels', state_key: '' })],
  ['of another room', (event) => ({ ...event, room_id: '!other:a.test' })],
  ['by another sender', (event) => ({ ...event, sender: '@admin:a.test' })],
  ['about another user', (event) => ({ ...event, state_key: '@admin:a.test' })],
  ['with invalid prev_events', (event) => ({ ...event, prev_events: ['x', { a: 1 }] })],
];
