import { type JsonObject, SigningKey, signJson } from '../../src/protocol/index.ts';

/** A device of a user, as its client knows it: with its secret key. */
export class ClientDevice {
  readonly userId: string;
  readonly deviceId: string;
  readonly key: SigningKey;

  constructor(userId: string, deviceId: string) {
    this.userId = userId;
    this.deviceId = deviceId;
    this.key = SigningKey.generate(deviceId);
  }

  /** Identity keys, signed. */
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

  /** Signed one-time keys named `first`, `first + 1`, ... */
  oneTimeKeys(count: number, first = 0, more: JsonObject = {}): JsonObject {
    const names = Array.from({ length: count }, (_, index) => `signed_curve25519:K${first + index}`);
    return Object.fromEntries(names.map((name) => [name, this.sign({ key: publicKey(), ...more })]));
  }

  sign(object: JsonObject): JsonObject {
    return signJson(object, this.userId, this.key);
  }
}

/** Some public key: nobody has the secret one. */
export const publicKey = () => SigningKey.generate('x').publicKey.base64;
