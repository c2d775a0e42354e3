import { randomBytes } from 'node:crypto';
import { decodeBase64, type JsonObject, SigningKey, signJson } from '../../../src/protocol/index.ts';
import { newSigningKey } from '../inputs/signing-key.ts';

/** A device as its client knows it, with its secret signing key. */
export class ClientDevice {
  readonly userId: string;
  readonly deviceId: string;
  readonly key: SigningKey;

  constructor(userId: string, deviceId: string) {
    this.userId = userId;
    this.deviceId = deviceId;
    this.key = newSigningKey(deviceId);
  }

  /** Signed identity keys. */
  deviceKeys(more: JsonObject = {}): JsonObject {
    const { userId, deviceId } = this;
    return this.sign({
      user_id: userId,
      device_id: deviceId,
      algorithms: ['m.olm.v1.curve25519-aes-sha2', 'm.megolm.v1.aes-sha2'],
      keys: {
        [`curve25519:${deviceId}`]: publicKey(),
        [`ed25519:${deviceId}`]: this.key.publicKey.base64,
      },
      ...more,
    });
  }

  /** Signed one-time keys, whose ids are K and a number, counted from `first`. */
  oneTimeKeys(count: number, first = 0, more: JsonObject = {}): JsonObject {
    const names = Array.from({ length: count }, (_, index) => `signed_curve25519:K${first + index}`);
    return Object.fromEntries(names.map((name) => [name, this.sign({ key: publicKey(), ...more })]));
  }

  sign(object: JsonObject): JsonObject {
    return signJson(object, this.userId, this.key);
  }
}

/** A random Curve25519 public key whose secret key does not exist. */
export const publicKey = () => randomBytes(32).toString('base64').replace('=', '');

/** The cross-signing keys of a user as their client knows them. */
export class ClientIdentity {
  readonly userId: string;
  readonly master = namedByItself();
  readonly selfSigning = namedByItself();
  readonly userSigning = namedByItself();

  constructor(userId: string) {
    this.userId = userId;
  }

  masterKey(): JsonObject {
    return this.#keyObject('master', this.master);
  }

  selfSigningKey(): JsonObject {
    return this.signAs(this.master, this.#keyObject('self_signing', this.selfSigning));
  }

  userSigningKey(): JsonObject {
    return this.signAs(this.master, this.#keyObject('user_signing', this.userSigning));
  }

  /** The three keys as they are uploaded. */
  keys(): Record<'master_key' | 'self_signing_key' | 'user_signing_key', JsonObject> {
    return {
      master_key: this.masterKey(),
      self_signing_key: this.selfSigningKey(),
      user_signing_key: this.userSigningKey(),
    };
  }

  signAs(key: SigningKey, object: JsonObject): JsonObject {
    return signJson(object, this.userId, key);
  }

  #keyObject(usage: string, key: SigningKey): JsonObject {
    return { user_id: this.userId, usage: [usage], keys: { [key.keyId]: key.name } };
  }
}

/** A key whose id is its public key. */
function namedByItself(): SigningKey {
  const key = newSigningKey('x');
  const seed = decodeBase64(key.exportSeed());
  return SigningKey.fromSeed(key.publicKey.base64, seed!)!;
}
