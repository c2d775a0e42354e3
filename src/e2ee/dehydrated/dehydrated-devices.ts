import type { Devices } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { forbidden, invalidParam, type JsonObject, notFound, tooLarge } from '../../protocol/index.ts';
import type { MessageQueues, PendingMessages } from '../../to-device/index.ts';
import type { KeyUpload, KeyUploadBody } from '../keys/key-upload.ts';
import type { E2eeTables } from '../tables.ts';
import { type DehydratedDevice, insertDehydrated, readDehydrated } from './store.ts';

/** A complete dehydrated device, as a client uploads it in one request. */
export interface DehydratedUpload extends KeyUploadBody {
  readonly deviceId: string;
  readonly data: JsonObject;
  readonly displayName: string | undefined;
  readonly device_keys: JsonObject;
}

/** To-device messages of a dehydrated device. */
export interface DehydratedMessages extends PendingMessages {
  /** Whether no further messages are queued. */
  readonly isLast: boolean;
}

export interface DehydratedDevicesDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly queues: MessageQueues;
  readonly upload: KeyUpload;
}

/** Maximum number of UTF-16 units of the encrypted device. A device with 50 one-time keys has about 10,000. */
const maxDataLength = 262_144;

/** Maximum number of messages in one response. */
const maxMessages = 100;

/**
 * Manages the dehydrated device of a user: a device without a client. The device receives room keys until the user's
 * next client takes it over.
 * Source: MSC3814, "Dehydrated devices with SSSS".
 */
export class DehydratedDevices {
  readonly #deps: DehydratedDevicesDeps;

  constructor(deps: DehydratedDevicesDeps) {
    this.#deps = deps;
  }

  /**
   * Creates the dehydrated device of a user and deletes the user's previous dehydrated device.
   * @throws MatrixError M_FORBIDDEN when the user has another device or a cross-signing key with that id, M_INVALID_PARAM,
   * M_TOO_LARGE; and the errors of `KeyUpload`
   */
  async put(userId: string, upload: DehydratedUpload): Promise<void> {
    const { devices, streams, upload: keyUpload } = this.#deps;
    const { deviceId, displayName, data } = upload;
    devices.check({ deviceId, displayName });
    if (typeof data['algorithm'] !== 'string') throw invalidParam('device_data: algorithm is missing');
    if (JSON.stringify(data).length > maxDataLength)
      throw tooLarge('device_data: the encrypted device is too large');
    const checked = await keyUpload.check({ userId, deviceId }, upload);
    await streams.write<E2eeTables, void>(async (writer, publish) => {
      const previous = await readDehydrated(writer, userId);
      if (previous) await devices.removeIn(writer, publish, userId, [previous.deviceId]);
      const device = { userId, deviceId, displayName, dehydrated: true };
      const { created } = await devices.ensure(writer, publish, device);
      if (!created) throw forbidden('You have another device with this id');
      await keyUpload.uploadIn(writer, publish, { userId, deviceId }, checked);
      await insertDehydrated(writer, userId, { deviceId, data });
    });
  }

  /** @throws MatrixError M_NOT_FOUND */
  async get(userId: string): Promise<DehydratedDevice> {
    const device = await readDehydrated(this.#deps.database.reader<E2eeTables>(), userId);
    if (!device) throw notFound('You have no dehydrated device');
    return device;
  }

  /**
   * Deletes the dehydrated device of a user. @returns the id of the deleted device
   * @throws MatrixError M_NOT_FOUND
   */
  async delete(userId: string): Promise<string> {
    const { deviceId } = await this.get(userId);
    await this.#deps.devices.remove(userId, [deviceId]);
    return deviceId;
  }

  /**
   * Returns the messages for the dehydrated device after a position. They stay in the queue, so that another client can
   * read them again from the start.
   * @param limit maximum number of messages: at most 100, and 100 by default
   * @throws MatrixError M_FORBIDDEN when the device is not the user's dehydrated device
   */
  async messages(
    userId: string,
    deviceId: string,
    after: number,
    limit = maxMessages,
  ): Promise<DehydratedMessages> {
    const { database, queues, streams } = this.#deps;
    const device = await readDehydrated(database.reader<E2eeTables>(), userId);
    if (device?.deviceId !== deviceId) throw forbidden('This is not your dehydrated device');
    const upTo = streams.current;
    const page = { after, upTo, limit: Math.min(limit, maxMessages) };
    const { messages, position } = await queues.pending(userId, deviceId, page);
    const nextPage = { after: position, upTo, limit: 1 };
    const isLast =
      position >= upTo || (await queues.pending(userId, deviceId, nextPage)).messages.length === 0;
    return { messages, position, isLast };
  }
}
