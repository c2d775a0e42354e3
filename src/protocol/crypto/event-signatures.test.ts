import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { draftFor } from '../../../test/protocol/drafts.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { buildEvent, type EventDraft, signEvent } from '../events/build.ts';
import { receivePdu } from '../events/parse.ts';
import { getRoomVersion, roomVersions } from '../room-versions.ts';
import { isKeyValidFor, isSignedByServer, requiredSigners, type ServerKey } from './event-signatures.ts';

const key = newSigningKey('1');
const signer = { serverName: 'example.org', key };
const DAY = 24 * 60 * 60 * 1000;

function eventOf(versionId: string, changes: Partial<EventDraft> = {}) {
  const version = getRoomVersion(versionId)!;
  return buildEvent({ ...draftFor(version), ...changes }, version, signer).event;
}

function signersOf(versionId: string, changes: Partial<EventDraft> = {}): string[] | undefined {
  const signers = requiredSigners(eventOf(versionId, changes));
  return signers && [...signers];
}

suite('requiredSigners', () => {
  test('requires the server of the sender in every room version', () => {
    for (const id of roomVersions.keys()) assert.deepEqual(signersOf(id), ['example.org']);
  });

  test('requires the server in the event id up to room version 2', () => {
    for (const id of ['1', '2']) {
      assert.deepEqual(signersOf(id, { eventId: '$0:elsewhere' }), ['example.org', 'elsewhere']);
    }
  });

  test('does not require the server of the sender of a third-party invite', () => {
    const invite = { type: 'm.room.member', stateKey: '@b:elsewhere' };
    const content = { membership: 'invite', third_party_invite: { signed: {} } };
    assert.deepEqual(signersOf('1', { ...invite, content }), ['example.org'], 'the server of the event id');
    assert.deepEqual(signersOf('10', { ...invite, content }), []);
    assert.deepEqual(signersOf('10', { ...invite, content: { ...content, membership: 'join' } }), [
      'example.org',
    ]);
    assert.deepEqual(signersOf('10', { ...invite, content: { membership: 'invite' } }), ['example.org']);
    assert.deepEqual(signersOf('10', { ...invite, type: 'm.room.other', content }), ['example.org']);
    const malformed = { ...content, third_party_invite: true };
    assert.deepEqual(signersOf('10', { ...invite, content: malformed }), ['example.org']);
  });

  test('requires the server of the user who authorised a join since room version 8', () => {
    const join = (via: string | number): Partial<EventDraft> => ({
      type: 'm.room.member',
      stateKey: '@alice:example.org',
      content: { membership: 'join', join_authorised_via_users_server: via },
    });
    assert.deepEqual(signersOf('7', join('@b:elsewhere')), ['example.org']);
    assert.deepEqual(signersOf('8', join('@b:elsewhere')), ['example.org', 'elsewhere']);
    assert.deepEqual(signersOf('8', join('@b:example.org')), ['example.org']);
    assert.equal(signersOf('8', join('nobody')), undefined);
    assert.equal(signersOf('8', join(5)), undefined);
    assert.deepEqual(signersOf('8', { ...join('nobody'), type: 'm.room.other' }), ['example.org']);
  });
});

suite('isKeyValidFor', () => {
  const now = 100 * DAY;
  const validUntil = (validUntilTs: number, expiredTs?: number): ServerKey => ({
    key: key.publicKey,
    validUntilTs,
    expiredTs,
  });
  const isValid = (versionId: string, originServerTs: number, serverKey: ServerKey) =>
    isKeyValidFor(serverKey, eventOf(versionId, { originServerTs }), now);

  test('refuses events after valid_until_ts since room version 5', () => {
    assert.equal(isValid('4', now, validUntil(now - 1)), true);
    assert.equal(isValid('5', now, validUntil(now - 1)), false);
    assert.equal(isValid('5', now, validUntil(now)), true);
  });

  test('refuses events whose origin_server_ts is more than seven days ahead since room version 5', () => {
    assert.equal(isValid('4', now + 8 * DAY, validUntil(now + 100 * DAY)), true);
    assert.equal(isValid('5', now + 8 * DAY, validUntil(now + 100 * DAY)), false);
    assert.equal(isValid('5', now + 7 * DAY, validUntil(now + 100 * DAY)), true);
  });

  test('refuses events after expired_ts in every room version', () => {
    for (const id of roomVersions.keys()) {
      assert.equal(isValid(id, 50, validUntil(0, 50)), true, id);
      assert.equal(isValid(id, 51, validUntil(now, 50)), false, id);
    }
  });
});

suite('isSignedByServer', () => {
  const version = getRoomVersion('10')!;
  const event = eventOf('10', { originServerTs: 1000 });
  const { signingInput: signed } = receivePdu(event.pdu, version);
  const forged = { ...event, pdu: { ...event.pdu, signatures: { 'example.org': { 'ed25519:1': 'AAAA' } } } };
  const valid = { key: key.publicKey, validUntilTs: 2000 };
  const expired = { key: key.publicKey, validUntilTs: 999 };

  test('accepts only a correct signature by a known and valid key of the given server', () => {
    assert.equal(
      isSignedByServer(event, signed, 'example.org', () => valid, 5000),
      true,
    );
    assert.equal(
      isSignedByServer(event, `${signed} `, 'example.org', () => valid, 5000),
      false,
    );
    assert.equal(
      isSignedByServer(forged, signed, 'example.org', () => valid, 5000),
      false,
    );
    assert.equal(
      isSignedByServer(event, signed, 'elsewhere', () => valid, 5000),
      false,
    );
    assert.equal(
      isSignedByServer(event, signed, 'example.org', () => undefined, 5000),
      false,
    );
    assert.equal(
      isSignedByServer(event, signed, 'example.org', () => expired, 5000),
      false,
    );
  });

  test('accepts one correct signature unless a signature by another valid key is wrong', () => {
    const second = { serverName: 'example.org', key: newSigningKey('2') };
    const signedTwice = signEvent(event, second).event;
    const secondServerKey = { key: second.key.publicKey, validUntilTs: 2000 };
    const look = (keys: Record<string, ServerKey>) => (_server: string, keyId: string) => keys[keyId];
    const check = (keys: Record<string, ServerKey>) =>
      isSignedByServer(signedTwice, signed, 'example.org', look(keys), 5000);
    assert.equal(check({ 'ed25519:1': valid, 'ed25519:2': secondServerKey }), true);
    assert.equal(check({ 'ed25519:2': secondServerKey }), true);
    assert.equal(check({ 'ed25519:1': valid, 'ed25519:2': valid }), false);
    assert.equal(check({ 'ed25519:1': valid, 'ed25519:2': expired }), true);
  });
});
