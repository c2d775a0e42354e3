import type { RemoteKeys } from '../../../src/e2ee/index.ts';
import { type JsonObject, serverOfUser } from '../../../src/protocol/index.ts';
import { ClientDevice, ClientIdentity } from '../users/client-device.ts';

/** A user of a remote server with the keys of their devices. */
export class RemoteUser {
  readonly userId: string;
  readonly server: string;
  readonly devices = new Map<string, ClientDevice>();
  /** The signed device keys, by device id. */
  readonly keys = new Map<string, JsonObject>();
  /** The cross-signing keys. */
  identity: ClientIdentity;
  streamId = 1;
  #deviceCount = 0;

  constructor(userId: string) {
    this.userId = userId;
    this.server = serverOfUser(userId);
    this.identity = new ClientIdentity(userId);
    this.addDevice();
  }

  /** Adds a device with signed keys. @returns the device id */
  addDevice(deviceId = `D${this.#deviceCount++}`): string {
    const device = new ClientDevice(this.userId, deviceId);
    this.devices.set(deviceId, device);
    this.keys.set(deviceId, device.deviceKeys());
    return deviceId;
  }

  /** Adds a device. @returns the content of the `m.device_list_update` EDU for it */
  addDeviceUpdate(more: JsonObject = {}): JsonObject {
    const deviceId = this.addDevice();
    const previous = this.streamId++;
    return {
      user_id: this.userId,
      device_id: deviceId,
      stream_id: this.streamId,
      prev_id: [previous],
      keys: this.keys.get(deviceId)!,
      ...more,
    };
  }

  /** Deletes a device. @returns the content of the `m.device_list_update` EDU for it */
  deleteDeviceUpdate(deviceId: string): JsonObject {
    this.devices.delete(deviceId);
    this.keys.delete(deviceId);
    const previous = this.streamId++;
    return {
      user_id: this.userId,
      device_id: deviceId,
      stream_id: this.streamId,
      prev_id: [previous],
      deleted: true,
    };
  }

  /** The response to `GET /user/devices`. */
  deviceList(): JsonObject {
    return {
      user_id: this.userId,
      stream_id: this.streamId,
      devices: [...this.keys].map(([device_id, keys]) => ({
        device_id,
        keys,
        device_display_name: device_id,
      })),
      master_key: this.identity.masterKey(),
      self_signing_key: this.identity.selfSigningKey(),
    };
  }
}

/** The remote servers of users: they respond to requests for keys, and the requests are recorded. */
export class FakeRemoteKeys implements RemoteKeys {
  readonly users = new Map<string, RemoteUser>();
  /** Requests in order: `query <server>`, `devices <user>` and `claim <server>`. */
  requests: string[] = [];
  isDown = false;
  /** Replaces the response to `GET /user/devices`. */
  devicesAnswer: ((user: RemoteUser) => JsonObject | Promise<JsonObject>) | undefined;

  addUser(userId: string): RemoteUser {
    const user = new RemoteUser(userId);
    this.users.set(userId, user);
    return user;
  }

  async query(server: string, users: ReadonlyMap<string, readonly string[]>): Promise<JsonObject> {
    this.#recordRequest(`query ${server}`);
    const knownUsers = [...users.keys()].flatMap((userId) => this.users.get(userId) ?? []);
    return {
      device_keys: Object.fromEntries(
        knownUsers.map(({ userId, keys }) => [userId, Object.fromEntries(keys)]),
      ),
      master_keys: Object.fromEntries(
        knownUsers.map(({ userId, identity }) => [userId, identity.masterKey()]),
      ),
      self_signing_keys: Object.fromEntries(
        knownUsers.map(({ userId, identity }) => [userId, identity.selfSigningKey()]),
      ),
    };
  }

  async claim(server: string): Promise<JsonObject> {
    this.#recordRequest(`claim ${server}`);
    return { one_time_keys: {} };
  }

  async devices(_server: string, userId: string): Promise<JsonObject> {
    this.#recordRequest(`devices ${userId}`);
    const user = this.users.get(userId);
    if (!user) throw new Error('no such user');
    return this.devicesAnswer ? this.devicesAnswer(user) : user.deviceList();
  }

  #recordRequest(request: string): void {
    this.requests.push(request);
    if (this.isDown) throw new Error('no route to host');
  }
}
