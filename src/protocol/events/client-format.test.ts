import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { draftFor } from '../../../test/protocol/drafts.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import type { JsonValue } from '../json.ts';
import { getRoomVersion, roomVersions } from '../room-versions.ts';
import { buildEvent, type EventDraft } from './build.ts';
import { clientEvent, clientEventWithoutRoomId } from './client-format.ts';
import { parseStrippedState, strippedState } from './stripped-state.ts';

const signer = { serverName: 'example.org', key: newSigningKey('1') };

function eventOf(versionId: string, changes: Partial<EventDraft> = {}) {
  const version = getRoomVersion(versionId)!;
  return buildEvent({ ...draftFor(version), ...changes }, version, signer).event;
}

suite('clientEvent', () => {
  test('leaves out the fields that only the federation format has', () => {
    const event = eventOf('12', { stateKey: '' });
    const expected = {
      type: 'm.room.message',
      content: { msgtype: 'm.text', body: 'Hello' },
      event_id: event.eventId,
      sender: '@alice:example.org',
      origin_server_ts: 1_000_000,
      state_key: '',
    };
    assert.deepEqual(clientEventWithoutRoomId(event), expected);
    assert.deepEqual(clientEvent(event), { ...expected, room_id: event.roomId });
    const unsigned = { age: 5 };
    assert.deepEqual(clientEvent(event, unsigned), { ...expected, room_id: event.roomId, unsigned });
  });

  test('leaves out state_key for message events', () => {
    const keys = Object.keys(clientEventWithoutRoomId(eventOf('12')));
    assert.deepEqual(keys, ['type', 'content', 'event_id', 'sender', 'origin_server_ts']);
  });

  test('writes redacts at the top level and in the content, in every room version', () => {
    for (const id of roomVersions.keys()) {
      const content = { reason: 'spam' };
      const event = eventOf(id, { type: 'm.room.redaction', content, redacts: '$1:example.org' });
      const client = clientEvent(event);
      assert.equal(client.redacts, '$1:example.org');
      assert.deepEqual(client.content, { reason: 'spam', redacts: '$1:example.org' });
    }
  });

  test('leaves redacts in the content of other event types as it is', () => {
    const client = clientEvent(eventOf('11', { content: { redacts: '$1:example.org' } }));
    assert.equal(client.redacts, undefined);
    assert.deepEqual(client.content, { redacts: '$1:example.org' });
  });
});

suite('stripped state', () => {
  const stripped = {
    type: 'm.room.name',
    state_key: '',
    sender: '@alice:example.org',
    content: { name: 'A room' },
  };

  test('keeps only type, state_key, sender and content of local and remote events', () => {
    const event = eventOf('12', { type: 'm.room.name', stateKey: '', content: { name: 'A room' } });
    assert.deepEqual(strippedState(event), stripped);
    assert.deepEqual(parseStrippedState(event.pdu), stripped);
    assert.deepEqual(parseStrippedState({ ...stripped, event_id: '$x', unsigned: {} }), stripped);
  });

  test('refuses events with a missing or malformed field', () => {
    for (const key of Object.keys(stripped)) {
      for (const value of [undefined, null, 1, []] as (JsonValue | undefined)[]) {
        assert.equal(parseStrippedState({ ...stripped, [key]: value }), undefined);
      }
    }
    for (const value of [null, 'text', [], [stripped]]) assert.equal(parseStrippedState(value), undefined);
  });
});
