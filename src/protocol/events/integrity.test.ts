import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftFor } from '../../../test/protocol/drafts.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { parseJson } from '../json/index.ts';
import type { JsonObject } from '../json.ts';
import { getRoomVersion, type RoomVersion, roomVersions } from '../room-versions.ts';
import { buildEvent } from './build.ts';
import { checkIntegrity, redactEvent } from './integrity.ts';
import { receivePdu } from './parse.ts';

const key = newSigningKey('1');
const signer = { serverName: 'example.org', key };
const serverKey = { key: key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER };
const NOW = 2_000_000;

function check(pdu: JsonObject, version: RoomVersion) {
  return checkIntegrity(receivePdu(pdu, version), () => serverKey, NOW);
}

for (const [id, version] of roomVersions) {
  const { event, json } = buildEvent(draftFor(version), version, signer);

  test(`checkIntegrity accepts an unchanged event of room version ${id}`, () => {
    const result = check(event.pdu, version);
    assert.ok(result.outcome === 'ok');
    assert.equal(result.json, json);
    assert.deepEqual(result.event, event);
  });

  test(`checkIntegrity redacts a changed message of room version ${id} and keeps its id`, () => {
    const result = check({ ...event.pdu, content: { body: 'something else' } }, version);
    assert.ok(result.outcome === 'redact');
    assert.deepEqual(result.event.content, {});
    assert.equal(result.event.eventId, event.eventId);
    assert.deepEqual(parseJson(result.json), result.event.pdu);
  });

  test(`checkIntegrity redacts an event of room version ${id} that was redacted in transit`, () => {
    const redacted = redactEvent(event);
    const result = check(redacted.event.pdu, version);
    assert.ok(result.outcome === 'redact');
    assert.equal(result.json, redacted.json);
    assert.deepEqual(result.event, redacted.event);
  });

  test(`checkIntegrity rejects an event of room version ${id} with a changed signed field`, () => {
    const changes: JsonObject[] = [
      { type: 'm.room.topic' },
      { sender: '@bob:example.org' },
      { depth: 6 },
      { origin_server_ts: 1_000_001 },
      { state_key: '' },
      { hashes: { sha256: 'x' } },
      { prev_events: [] },
      { auth_events: [] },
      { signatures: {} },
    ];
    for (const change of changes) {
      assert.equal(check({ ...event.pdu, ...change }, version).outcome, 'reject', JSON.stringify(change));
    }
  });
}

test('checkIntegrity names the server whose signature is missing', () => {
  const version = getRoomVersion('10')!;
  const { event } = buildEvent({ ...draftFor(version), sender: '@a:elsewhere' }, version, signer);
  const result = check(event.pdu, version);
  assert.ok(result.outcome === 'reject' && result.reason.includes('elsewhere'));
});

test('checkIntegrity rejects a restricted join whose authorising user is malformed', () => {
  const version = getRoomVersion('10')!;
  const content = { membership: 'join', join_authorised_via_users_server: 5 };
  const draft = { ...draftFor(version), type: 'm.room.member', stateKey: '@alice:example.org', content };
  assert.equal(check(buildEvent(draft, version, signer).event.pdu, version).outcome, 'reject');
});
