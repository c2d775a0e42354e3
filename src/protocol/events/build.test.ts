import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { anyRoomVersion, draftOf } from '../../../test/protocol/arbitrary.ts';
import { draftFor } from '../../../test/protocol/drafts.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { canonicalJson, parseJson } from '../json/index.ts';
import type { JsonObject } from '../json.ts';
import { getRoomVersion, roomVersions } from '../room-versions.ts';
import { buildEvent, signEvent } from './build.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { contentHash, referenceHash } from './hashes.ts';
import { checkIntegrity } from './integrity.ts';
import { MAX_EVENT_BYTES } from './limits.ts';
import { receivePdu } from './parse.ts';

const key = newSigningKey('1');
const signer = { serverName: 'example.org', key };
const serverKey = { key: key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER };

test('buildEvent makes events that receivePdu reads unchanged, in every room version', () => {
  fc.assert(
    fc.property(
      anyRoomVersion.chain((version) => draftOf(version).map((draft) => ({ version, draft }))),
      ({ version, draft }) => {
        const { event, json } = buildEvent(draft, version, signer);
        assert.equal(canonicalJson(event.pdu), json);
        const received = receivePdu(parseJson(json, { numbers: 'as written' }), version);
        assert.equal(received.json, json);
        assert.deepEqual({ ...received.event, pdu: 0, content: 0 }, { ...event, pdu: 0, content: 0 });
        assert.equal(
          (event.pdu.hashes as JsonObject).sha256,
          contentHash(new CanonicalEvent(event.pdu, version)),
        );
        const integrity = checkIntegrity(received, () => serverKey, draft.originServerTs);
        const needsOtherSignature = version.restricted && 'join_authorised_via_users_server' in draft.content;
        assert.equal(integrity.outcome, needsOtherSignature ? 'reject' : 'ok');
      },
    ),
    { numRuns: runs(500) },
  );
});

suite('buildEvent: differences between room versions', () => {
  test('takes the event id of the draft up to version 2, and makes it from the reference hash since version 3', () => {
    for (const [id, version] of roomVersions) {
      const { event } = buildEvent(draftFor(version), version, signer);
      const hash = referenceHash(event.pdu, version);
      const url = hash.replaceAll('+', '-').replaceAll('/', '_');
      const expected = Number(id) <= 2 ? '$0:example.org' : `$${Number(id) === 3 ? hash : url}`;
      assert.equal(event.eventId, expected);
      assert.equal(event.pdu['event_id'], Number(id) <= 2 ? expected : undefined);
    }
  });

  test('writes auth_events and prev_events as pairs with hashes up to version 2, and as ids since version 3', () => {
    for (const [id, version] of roomVersions) {
      const { event } = buildEvent(draftFor(version), version, signer);
      const [auth, prev] = ['$auth:example.org', '$before:example.org'];
      assert.deepEqual([event.authEventIds, event.prevEventIds], [[auth], [prev]]);
      const pair = [auth, { sha256: `hash of ${auth}` }];
      assert.deepEqual(event.pdu['auth_events'], [Number(id) <= 2 ? pair : auth]);
    }
  });

  test('writes redacts at the top level up to version 10, and in the content since version 11', () => {
    for (const version of roomVersions.values()) {
      const isAtTopLevel = version.redactsIn === 'event';
      const draft = {
        ...draftFor(version),
        type: 'm.room.redaction',
        content: { reason: 'x' },
        redacts: '$1:a',
      };
      const { event } = buildEvent(draft, version, signer);
      assert.equal(event.redacts, '$1:a');
      assert.equal(event.pdu['redacts'], isAtTopLevel ? '$1:a' : undefined);
      assert.equal(event.content['redacts'], isAtTopLevel ? undefined : '$1:a');
    }
  });

  test('makes the id of a room of version 12 from the id of the create event', () => {
    const version = getRoomVersion('12')!;
    const create = { ...draftFor(version), type: 'm.room.create', roomId: undefined, stateKey: '' };
    const { event, json } = buildEvent(create, version, signer);
    assert.equal(event.roomId, `!${event.eventId.slice(1)}`);
    assert.equal(event.pdu.room_id, undefined);
    assert.equal(json.includes('room_id'), false);
  });

  test('refuses floats since version 6', () => {
    for (const [id, version] of roomVersions) {
      const draft = { ...draftFor(version), content: { number: 50.57 } };
      if (Number(id) < 6) assert.ok(buildEvent(draft, version, signer).json.includes('50.57'));
      else assert.throws(() => buildEvent(draft, version, signer), { errcode: 'M_BAD_JSON' });
    }
  });

  test('refuses drafts that lack an id or a hash that the version requires, or have an id that it forbids', () => {
    const [v1, v11, v12] = ['1', '11', '12'].map((id) => getRoomVersion(id)!);
    const badJson = { errcode: 'M_BAD_JSON' };
    assert.throws(() => buildEvent({ ...draftFor(v1!), eventId: undefined }, v1!, signer), badJson);
    assert.throws(() => buildEvent({ ...draftFor(v1!), eventId: '$hash' }, v1!, signer), badJson);
    assert.throws(() => buildEvent({ ...draftFor(v1!), referenceHash: undefined }, v1!, signer), badJson);
    assert.throws(() => buildEvent({ ...draftFor(v11!), eventId: '$0:a' }, v11!, signer), badJson);
    assert.throws(() => buildEvent({ ...draftFor(v11!), roomId: undefined }, v11!, signer), badJson);
    assert.throws(() => buildEvent({ ...draftFor(v12!), roomId: undefined }, v12!, signer), badJson);
    assert.throws(() => buildEvent({ ...draftFor(v12!), type: 'm.room.create' }, v12!, signer), badJson);
  });
});

suite('buildEvent: limits', () => {
  const tooLarge = { errcode: 'M_TOO_LARGE', status: 413 };

  test('refuses events above 65,536 bytes, signatures included', () => {
    const version = getRoomVersion('12')!;
    const build = (body: string) =>
      buildEvent({ ...draftFor(version), content: { body } }, version, signer).json;
    const freeBytes = MAX_EVENT_BYTES - Buffer.byteLength(build(''));
    assert.equal(Buffer.byteLength(build('x'.repeat(freeBytes))), MAX_EVENT_BYTES);
    assert.throws(() => build('x'.repeat(freeBytes + 1)), tooLarge);
    assert.throws(() => build(`é${'x'.repeat(freeBytes - 1)}`), tooLarge);
    assert.throws(() => build('"'.repeat(freeBytes / 2 + 1)), tooLarge);
  });

  test('limits types and state keys of new events to 255 bytes, in every room version', () => {
    for (const version of roomVersions.values()) {
      const build = (type: string, stateKey: string) => () =>
        buildEvent({ ...draftFor(version), type, stateKey }, version, signer);
      assert.ok(build('x'.repeat(255), 'y'.repeat(255))());
      assert.throws(build('x'.repeat(256), ''), tooLarge);
      assert.throws(build('x', 'y'.repeat(256)), tooLarge);
      assert.throws(build('😀'.repeat(64), ''), tooLarge);
      assert.throws(build('x', 'é'.repeat(128)), tooLarge);
    }
  });

  test('clamps a depth beyond the range of safe integers', () => {
    const version = getRoomVersion('12')!;
    const { event } = buildEvent({ ...draftFor(version), depth: 2 ** 53 }, version, signer);
    assert.equal(event.depth, Number.MAX_SAFE_INTEGER);
  });
});

test('signEvent adds the signature of a second server and keeps the event id', () => {
  for (const version of roomVersions.values()) {
    const { event } = buildEvent(draftFor(version), version, signer);
    const second = { serverName: 'elsewhere', key: newSigningKey('2') };
    const signedTwice = signEvent(event, second);
    assert.equal(signedTwice.event.eventId, event.eventId);
    assert.deepEqual(Object.keys(signedTwice.event.pdu.signatures as JsonObject), [
      'example.org',
      'elsewhere',
    ]);
    const received = receivePdu(parseJson(signedTwice.json), version);
    assert.equal(received.hashMatches, true);
    const signature = (signedTwice.event.pdu.signatures as Record<string, Record<string, string>>)[
      'elsewhere'
    ]!;
    assert.ok(second.key.publicKey.verifies(received.signingInput, signature['ed25519:2']!));
  }
});
