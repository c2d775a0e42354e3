import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { anyRoomVersion, canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { type RoomVersion, roomVersions } from '../room-versions.ts';
import { buildEvent } from './build.ts';
import { redactEvent } from './integrity.ts';
import {
  isSignedByPolicyServer,
  needsPolicyServerSignature,
  parsePolicyServer,
  policyKeyId,
  withPolicySignature,
} from './policy-server.ts';

const key = newSigningKey('policy_server');
const policy = { serverName: 'policy.test', key: key.publicKey };
const origin = { serverName: 'a.test', key: newSigningKey('a') };

function message(version: RoomVersion, body: string) {
  return buildEvent(
    {
      type: 'm.room.message',
      sender: '@anna:a.test',
      roomId: '!room:a.test',
      content: { body },
      depth: 5,
      originServerTs: 1,
      authEventIds: [],
      prevEventIds: [],
      ...(version.eventId === 'origin' && { eventId: '$one:a.test', referenceHash: () => undefined }),
    },
    version,
    origin,
  );
}

/** Signs as a policy server does: over the redacted event. */
const sign = (built: ReturnType<typeof message>) => {
  const { signatures: _signatures, unsigned: _unsigned, ...rest } = redactEvent(built.event).event.pdu;
  const sorted = Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  const text = JSON.stringify(sorted, (_name, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return key.sign(text);
};

describe('policy servers', () => {
  it('reads a policy server only from a server name and an Ed25519 key', () => {
    const content = { via: 'policy.test', public_keys: { ed25519: key.publicKey.base64 } };
    assert.equal(parsePolicyServer(content)?.serverName, 'policy.test');
    assert.equal(parsePolicyServer(content)?.key.base64, key.publicKey.base64);
    fc.assert(
      fc.property(canonicalValue, canonicalValue, (via, keys) => {
        for (const candidate of [
          { via },
          { via: 'policy.test', public_keys: keys },
          { via, public_keys: content.public_keys },
          { via: 'policy.test', public_keys: { ed25519: keys } },
        ]) {
          const found = parsePolicyServer(candidate);
          assert.ok(found === undefined || typeof found.serverName === 'string');
        }
      }),
    );
  });

  it('requires a policy server signature for all events but the one that names the policy server', () => {
    assert.equal(needsPolicyServerSignature({ type: 'm.room.policy', stateKey: '' }), false);
    assert.equal(needsPolicyServerSignature({ type: 'm.room.policy' }), true);
    assert.equal(needsPolicyServerSignature({ type: 'm.room.policy', stateKey: 'x' }), true);
    assert.equal(needsPolicyServerSignature({ type: 'm.room.power_levels', stateKey: '' }), true);
  });

  it('verifies signatures over the redacted event, in every room version', () => {
    for (const version of roomVersions.values()) {
      const built = message(version, 'hello');
      assert.equal(isSignedByPolicyServer(built.event, policy), false);
      const signed = withPolicySignature(built.event, policy, sign(built));
      assert.equal(signed.event.eventId, built.event.eventId);
      assert.deepEqual(JSON.parse(signed.json), signed.event.pdu);
      assert.deepEqual(Object.keys(signed.event.pdu['signatures'] as object), ['a.test', 'policy.test']);
      assert.equal(isSignedByPolicyServer(signed.event, policy), true);
      assert.equal(isSignedByPolicyServer(redactEvent(signed.event).event, policy), true);
      const policyOfOtherKey = { ...policy, key: newSigningKey('policy_server').publicKey };
      assert.equal(isSignedByPolicyServer(signed.event, policyOfOtherKey), false);
      const signedForOtherEvent = withPolicySignature(message(version, 'bye').event, policy, sign(built));
      assert.equal(isSignedByPolicyServer(signedForOtherEvent.event, policy), false);
    }
  });

  it('refuses malformed signatures', () => {
    fc.assert(
      fc.property(anyRoomVersion, canonicalValue, (version, value) => {
        const { event } = message(version, 'hello');
        for (const signatures of [
          value,
          { 'policy.test': value },
          { 'policy.test': { [policyKeyId]: value } },
        ]) {
          const pdu = { ...event.pdu, signatures };
          assert.equal(isSignedByPolicyServer({ ...event, pdu }, policy), false);
        }
      }),
    );
  });
});
