import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { mutated } from '../../../test/support/inputs/mutated.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { ClientDevice, ClientIdentity } from '../../../test/support/users/client-device.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { parseCrossSigningKey } from './cross-signing-key.ts';
import { checkOtherUserSignature, checkOwnSignatures, type Signer } from './signature-check.ts';

const alice = new ClientDevice('@alice:test', 'DEVICE');
const identity = new ClientIdentity(alice.userId);
const bobIdentity = new ClientIdentity('@bob:test');
const deviceKeys = alice.deviceKeys();
const signer: Signer = {
  userId: alice.userId,
  crossSigning: new Map([
    ['master', { publicKey: identity.master.name, object: identity.masterKey() }],
    ['self_signing', { publicKey: identity.selfSigning.name, object: identity.selfSigningKey() }],
    ['user_signing', { publicKey: identity.userSigning.name, object: identity.userSigningKey() }],
  ]),
  devices: new Map([[alice.deviceId, deviceKeys]]),
  signingKeys: new Map([[alice.deviceId, alice.key.publicKey]]),
};
const signed = {
  device: identity.signAs(identity.selfSigning, deviceKeys),
  master: alice.sign(identity.masterKey()),
  other: identity.signAs(identity.userSigning, bobIdentity.masterKey()),
};
const target = { targetUserId: bobIdentity.userId, targetKey: bobIdentity.master.name };
const check = {
  device: (object: JsonObject) => checkOwnSignatures(signer, alice.deviceId, object),
  master: (object: JsonObject) => checkOwnSignatures(signer, identity.master.name, object),
  other: (object: JsonObject) => checkOtherUserSignature(signer, target, object, bobIdentity.masterKey()),
};
const kinds = ['device', 'master', 'other'] as const;

/** Returns `undefined` when the function throws a MatrixError. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    assert.ok(error instanceof MatrixError, String(error));
    return undefined;
  }
}

describe('checkOwnSignatures and checkOtherUserSignature', () => {
  it('accept unchanged signed objects', () => {
    for (const kind of kinds) assert.equal(Object.keys(check[kind](signed[kind]).signatures).length, 1);
  });

  it('reject a changed object, or return the same signature as for the unchanged object', () => {
    const anySignedObject = fc
      .constantFrom(...kinds)
      .chain((kind) => fc.tuple(fc.constant(kind), mutated(signed[kind])));
    fc.assert(
      fc.property(anySignedObject, ([kind, object]) => {
        const checked = attempt(() => check[kind](object));
        if (checked) assert.deepEqual(checked, check[kind](signed[kind]));
      }),
      { numRuns: runs(1_000) },
    );
  });

  it('reject arbitrary objects', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.dictionary(fc.string(), fc.jsonValue()), (kind, object) => {
        assert.equal(
          attempt(() => check[kind](object as JsonObject)),
          undefined,
        );
      }),
    );
  });
});

describe('parseCrossSigningKey', () => {
  it('returns the unchanged public key from a changed object, or rejects it', () => {
    fc.assert(
      fc.property(mutated(identity.masterKey()), (object) => {
        const key = attempt(() => parseCrossSigningKey(object, alice.userId, 'master'));
        if (key) assert.equal(key.publicKey, identity.master.name);
      }),
      { numRuns: runs(500) },
    );
  });
});
