import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { mutated } from '../../../test/support/inputs/mutated.ts';
import { ClientDevice } from '../../../test/support/users/client-device.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { validKeys, validOneTimeKeys } from '../remote-keys/remote-keys.ts';
import { parseDeviceKeys } from './device-keys.ts';
import { parseFallbackKeys, parseOneTimeKeys } from './one-time-keys.ts';

const alice = new ClientDevice('@alice:test', 'DEVICE');
const anyObject = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<JsonObject>;

/** Reports whether the function throws a MatrixError. */
function throwsMatrixError(parse: () => unknown): boolean {
  try {
    parse();
    return false;
  } catch (error) {
    assert.ok(error instanceof MatrixError, String(error));
    return true;
  }
}

describe('parsing of keys that clients upload', () => {
  it('rejects arbitrary objects as device keys', () => {
    fc.assert(
      fc.property(anyObject, (object) => {
        assert.ok(throwsMatrixError(() => parseDeviceKeys(object, alice.userId, alice.deviceId)));
      }),
    );
  });

  it('returns device keys as they were uploaded, or throws a MatrixError', () => {
    fc.assert(
      fc.property(mutated(alice.deviceKeys()), (changed) => {
        if (throwsMatrixError(() => parseDeviceKeys(changed, alice.userId, alice.deviceId))) return;
        const { object } = parseDeviceKeys(changed, alice.userId, alice.deviceId);
        assert.deepEqual(object, changed);
        assert.deepEqual([object['user_id'], object['device_id']], [alice.userId, alice.deviceId]);
      }),
      { numRuns: 500 },
    );
  });

  it('returns one-time and fallback keys as they were uploaded, or throws a MatrixError', () => {
    const keys = fc.oneof(mutated(alice.oneTimeKeys(1)), mutated(alice.oneTimeKeys(2)));
    fc.assert(
      fc.property(fc.oneof(anyObject, keys), (object) => {
        for (const parse of [parseOneTimeKeys, parseFallbackKeys]) {
          if (throwsMatrixError(() => parse(object))) continue;
          const parsed = parse(object).map(({ algorithm, keyId, key }) => [
            `${algorithm}:${keyId}`,
            JSON.parse(key),
          ]);
          assert.deepEqual(parsed, Object.entries(JSON.parse(JSON.stringify(object))));
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('validation of keys from other servers', () => {
  const users = new Map([[alice.userId, [] as string[]]]);
  const requests = new Map([[alice.userId, new Map([[alice.deviceId, 'signed_curve25519']])]]);
  const answer: JsonObject = {
    device_keys: { [alice.userId]: { [alice.deviceId]: alice.deviceKeys() } },
    one_time_keys: { [alice.userId]: { [alice.deviceId]: alice.oneTimeKeys(1) } },
  };

  it('returns only requested keys from arbitrary responses', () => {
    fc.assert(
      fc.property(fc.oneof(anyObject, mutated(answer)), (object) => {
        const valid = validKeys(object, users);
        assert.ok(Object.keys(valid.device_keys).every((userId) => userId === alice.userId));
        for (const [deviceId, keys] of Object.entries(valid.device_keys[alice.userId] ?? {})) {
          assert.deepEqual([keys['user_id'], keys['device_id']], [alice.userId, deviceId]);
        }
        const claimed = validOneTimeKeys(object, requests);
        assert.ok(Object.keys(claimed).every((userId) => userId === alice.userId));
        for (const [deviceId, keys] of Object.entries(claimed[alice.userId] ?? {})) {
          assert.equal(deviceId, alice.deviceId);
          const [name = '', ...others] = Object.keys(keys);
          assert.ok(name.startsWith('signed_curve25519:') && others.length === 0);
        }
      }),
      { numRuns: 500 },
    );
  });
});
