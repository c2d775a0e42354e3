import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../protocol/index.ts';
import { HandshakeFailure } from '../handshake.ts';
import { checkTemplate } from './template-check.ts';

const userId = '@anna:a.test';
const expected = { server: 'b.test', roomId: '!room:b.test', userId, membership: 'join' } as const;
const validTemplate = {
  type: 'm.room.member',
  room_id: '!room:b.test',
  sender: userId,
  state_key: userId,
  content: { membership: 'join' },
  prev_events: [],
  auth_events: [],
  depth: 5,
};
const check = (event: JsonObject, roomVersion: string | undefined = '10') =>
  checkTemplate({ roomVersion, event }, expected);

describe('checkTemplate checks the event templates of remote servers', () => {
  it('accepts the requested event template', () => {
    const checked = check(validTemplate);
    assert.equal(checked.version.id, '10');
    assert.equal(checked.authoriser, undefined);
    assert.equal(checkTemplate({ roomVersion: undefined, event: validTemplate }, expected).version.id, '1');
  });

  const invalidTemplates: [what: string, event: JsonObject, version?: string][] = [
    ['of another event type', { ...validTemplate, type: 'm.room.power_levels' }],
    ['of another room', { ...validTemplate, room_id: '!other:b.test' }],
    ['without a room id', { ...validTemplate, room_id: undefined }],
    ['by another sender', { ...validTemplate, sender: '@ben:a.test' }],
    ['about another user', { ...validTemplate, state_key: '@ben:a.test' }],
    ['without a state key', { ...validTemplate, state_key: undefined }],
    ['with another membership', { ...validTemplate, content: { membership: 'ban' } }],
    ['without content', { ...validTemplate, content: undefined }],
    ['with a list for content', { ...validTemplate, content: ['join'] }],
    ['without prev_events', { ...validTemplate, prev_events: undefined }],
    ['of an unknown room version', validTemplate, '99'],
    ['of the room version __proto__', validTemplate, '__proto__'],
    [
      'authorised by a user of a third server',
      { ...validTemplate, content: { membership: 'join', join_authorised_via_users_server: '@x:c.test' } },
    ],
    [
      'authorised by an invalid user id',
      { ...validTemplate, content: { membership: 'join', join_authorised_via_users_server: 5 } },
    ],
  ];
  for (const [what, event, version] of invalidTemplates) {
    it(`refuses an event template ${what}`, () => {
      assert.throws(() => check(event, version), HandshakeFailure);
    });
  }

  it('returns the authorising user in room versions with restricted joins only', () => {
    const content = { membership: 'join', join_authorised_via_users_server: '@x:b.test' };
    assert.equal(check({ ...validTemplate, content }).authoriser, '@x:b.test');
    assert.equal(check({ ...validTemplate, content }, '7').authoriser, undefined);
  });

  it('uses the room version that this server knows when the response does not name one', () => {
    const withDefault = { ...expected, defaultVersion: '10' };
    assert.equal(
      checkTemplate({ roomVersion: undefined, event: validTemplate }, withDefault).version.id,
      '10',
    );
    assert.equal(checkTemplate({ roomVersion: '9', event: validTemplate }, withDefault).version.id, '9');
  });

  it('refuses a knock in room versions without knocking', () => {
    const knock = (roomVersion: string | undefined) => () =>
      checkTemplate(
        { roomVersion, event: { ...validTemplate, content: { membership: 'knock' } } },
        { ...expected, membership: 'knock' },
      );
    assert.equal(knock('7')().version.id, '7');
    for (const version of ['1', '6', undefined]) assert.throws(knock(version), HandshakeFailure);
  });

  it('refuses arbitrary objects', () => {
    fc.assert(
      fc.property(fc.object(), fc.option(fc.string(), { nil: undefined }), (event, roomVersion) => {
        assert.throws(
          () => checkTemplate({ roomVersion, event: event as JsonObject }, expected),
          HandshakeFailure,
        );
      }),
    );
  });
});
