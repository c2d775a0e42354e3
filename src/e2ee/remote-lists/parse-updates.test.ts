import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { mutated } from '../../../test/support/inputs/mutated.ts';
import { RemoteUser } from '../../../test/support/other-servers/remote-users.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { parseDeviceListUpdate, parseSigningKeyUpdate, parseUserDevices } from './parse-updates.ts';

const bob = new RemoteUser('@bob:elsewhere');
const anyObject = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<JsonObject>;

function checkDevice(keys: JsonObject | undefined, deviceId: string): void {
  if (!keys) return;
  assert.deepEqual([keys['user_id'], keys['device_id']], [bob.userId, deviceId]);
  const signers = Object.keys(keys.signatures as object);
  assert.ok(
    signers.every((signer) => signer === bob.userId),
    'signatures of the user only',
  );
}

describe('parsing of device list updates', () => {
  it('accepts only updates about users of the sending server', () => {
    fc.assert(
      fc.property(fc.oneof(anyObject, mutated(bob.addDeviceUpdate())), (content) => {
        const update = parseDeviceListUpdate('elsewhere', content);
        assert.equal(parseDeviceListUpdate('evil', content), undefined);
        if (!update) return;
        assert.equal(update.userId.endsWith(':elsewhere'), true);
        if (update.userId === bob.userId) checkDevice(update.keys, update.deviceId);
      }),
      { numRuns: 500 },
    );
  });

  it('accepts updates about historical user ids of printable ASCII, and rejects other invalid user ids', () => {
    for (const [userId, isAccepted] of [
      ['@Bob!:elsewhere', true],
      ['@:elsewhere', false],
      ['@böb:elsewhere', false],
      ['@b b:elsewhere', false],
    ] as const) {
      const list = { ...bob.addDeviceUpdate(), user_id: userId };
      const keys = { user_id: userId };
      assert.equal(parseDeviceListUpdate('elsewhere', list) !== undefined, isAccepted, userId);
      assert.equal(parseSigningKeyUpdate('elsewhere', keys) !== undefined, isAccepted, userId);
    }
  });

  it('returns only valid keys from arbitrary responses and updates', () => {
    const signing = {
      user_id: bob.userId,
      master_key: bob.identity.masterKey(),
      self_signing_key: bob.identity.selfSigningKey(),
    };
    fc.assert(
      fc.property(fc.oneof(anyObject, mutated(bob.deviceList()), mutated(signing)), (content) => {
        const list = parseUserDevices(content, bob.userId);
        for (const [deviceId, keys] of list?.devices ?? []) checkDevice(keys, deviceId);
        const update = parseSigningKeyUpdate('elsewhere', content);
        for (const key of [update?.masterKey, update?.selfSigningKey, list?.masterKey]) {
          if (key) assert.deepEqual(Object.keys(key['keys'] as object).length, 1);
        }
      }),
      { numRuns: 500 },
    );
  });
});
