import type { Devices } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { forbidden, invalidParam, type JsonObject, notFound, tooLarge } from '../../protocol/index.ts';
import type { MessageQueues, PendingMessages } from '../../to-device/index.ts';
import type { KeyUpload, KeyUploadBody } from '../keys/key-upload.ts';
import type { E2eeTables } from '../tables.ts';
import { type DehydratedDevice, insertDehydrated, readDehydrated } from './store.ts';

/** What a client uploads: everything that there is of the device, at once. */
export interface DehydratedUpload extends KeyUploadBody {
  readonly deviceId: string;
  readonly data: JsonObject;
  readonly displayName: string | undefined;
  readonly device_keys: JsonObject;
}

/** Messages for a dehydrated device. */
export interface DehydratedMessages extends PendingMessages {
  /** Whether there are none after these. */
  readonly isLast: boolean;
}

export interface DehydratedDevicesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly queues: MessageQueues;
  readonly upload: KeyUpload;
}

/** UTF-16 units of the encrypted device; a real one with 50 one-time keys has about 10,000. */
const largestData = 262_144;

/** Messages in one answer. */
const messagesAtOnce = 100;

/**
 * A device of a user that nobody uses: it gathers room keys until the user logs in again, whose client takes it over.
 * Source: MSC3814, "Dehydrated devices with SSSS".
 */
export class DehydratedDevices {
  readonly #deps: DehydratedDevicesDeps;

  constructor(deps: DehydratedDevicesDeps) {
    this.#deps = deps;
  }

  /**
   * Makes a user's dehydrated device, instead of the one that was there.
   * @throws MatrixError M_FORBIDDEN when the user has another device of that id, and as `KeyUpload`
   */
  async put(userId: string, upload: DehydratedUpload): Promise<void> {
    const { devices, streams, upload: keys } = this.#deps;
    const { deviceId, displayName, data } = upload;
    devices.check({ deviceId, displayName });
    if (typeof data['algorithm'] !== 'string') throw invalidParam('device_data: the algorithm is missing');
    if (JSON.stringify(data).length > largestData) throw tooLarge('device_data: this is too large');
    const checked = await keys.check({ userId, deviceId }, upload);
    await streams.write<E2eeTables, void>(async (writer, publish) => {
      const present = await readDehydrated(writer, userId);
      if (present) await devices.removeIn(writer, publish, userId, [present.deviceId]);
      const device = { userId, deviceId, displayName, dehydrated: true };
      const { created } = await devices.ensure(writer, publish, device);
      if (!created) throw forbidden('You have another device of that id');
      await keys.uploadIn(writer, publish, { userId, deviceId }, checked);
      await insertDehydrated(writer, userId, { deviceId, data });
    });
  }

  /** @throws MatrixError M_NOT_FOUND */
  async get(userId: string): Promise<DehydratedDevice> {
    const device = await readDehydrated(this.#deps.database.reader<E2eeTables>(), userId);
    if (!device) throw notFound('You have no dehydrated device');
    return device;
  }

  /** @returns the id of the device that is gone. @throws MatrixError M_NOT_FOUND */
  async delete(userId: string): Promise<string> {
    const { deviceId } = await this.get(userId);
    await this.#deps.devices.remove(userId, [deviceId]);
    return deviceId;
  }

  /**
   * The messages for the dehydrated device after a position. They stay, so that another client can begin anew.
   * @param limit 100 at the most, which is what is given without it
   * @throws MatrixError M_FORBIDDEN when it is not the user's dehydrated device
   */
  async messages(
    userId: string,
    deviceId: string,
    after: number,
    limit = messagesAtOnce,
  ): Promise<DehydratedMessages> {
    const { database, queues, streams } = this.#deps;
    const device = await readDehydrated(database.reader<E2eeTables>(), userId);
    if (device?.deviceId !== deviceId) throw forbidden('This is not your dehydrated device');
    const upTo = streams.current;
    const page = { after, upTo, limit: Math.min(limit, messagesAtOnce) };
    const { messages, position } = await queues.pending(userId, deviceId, page);
    const next = { after: position, upTo, limit: 1 };
    const isLast = position >= upTo || (await queues.pending(userId, deviceId, next)).messages.length === 0;
    return { messages, position, isLast };
  }
}
