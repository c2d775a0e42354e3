import type { SyncPosition } from '../../kernel/streams/index.ts';
import type { DeviceRef } from '../../sync-contract/index.ts';
import type { Changes, Feed } from '../feeds/feed.ts';
import { bitsOf, type SourceList } from '../sources/source-list.ts';

/** The top-level fields of an answer that concern one device. */
export interface DeviceAnswer {
  /** JSON text of the fields, each with a comma in front. */
  readonly text: string;
  /** Whether the fields are a reason to answer a long poll. */
  readonly hasNewData: boolean;
  /** With this answer, the device has received its messages up to this position. */
  readonly toDevice: number;
}

/** Maximum number of messages to a device in one answer; the next sync returns the other messages. */
const maxMessages = 100;

/** Makes the top-level fields of an answer that concern one device, and returns the pending to-device messages. */
export class DeviceFields {
  readonly #sources: Pick<SourceList, 'device' | 'deviceQueue'>;

  /** Bits of the sources of these fields, combined. */
  readonly bits: number;

  constructor(sources: Pick<SourceList, 'device' | 'deviceQueue'>) {
    this.#sources = sources;
    this.bits = bitsOf(sources.device);
  }

  /** Whether it is certain, without a query, that there is no new data after a token. */
  isQuiet(since: SyncPosition): boolean {
    if (since.toDevice !== since.position) return false;
    for (const { section } of this.#sources.device) if (!section.isQuiet(since.position)) return false;
    return true;
  }

  /**
   * Drops the messages that the device has received: all up to its token.
   * @returns `undefined` when there is nothing to drop
   */
  acknowledge({ userId, deviceId }: DeviceRef, { toDevice }: SyncPosition): Promise<void> | undefined {
    const { deviceQueue } = this.#sources;
    if (!deviceQueue || deviceId === undefined || deviceQueue.isEmptyNow({ userId, deviceId }))
      return undefined;
    return deviceQueue.acknowledge(userId, deviceId, toDevice);
  }

  /** Returns the fields that every answer has; without a promise when they are in memory. */
  constant(device: DeviceRef): string | Promise<string> {
    let text = '';
    for (const { section } of this.#sources.device) {
      const fields = section.constant(device);
      if (fields instanceof Promise) return fields.then(() => this.#loadConstant(device));
      text += fields;
    }
    return text;
  }

  async #loadConstant(device: DeviceRef): Promise<string> {
    return (await Promise.all(this.#sources.device.map(({ section }) => section.constant(device)))).join('');
  }

  /**
   * Returns the fields that every answer has when they are in memory and no message is pending for the
   * device; `undefined` otherwise. The feed caches them until the next change for the user.
   */
  quietFields({ userId, deviceId }: DeviceRef, feed: Feed): string | undefined {
    const cached = feed.constantFields(deviceId);
    if (cached !== undefined) return cached;
    const { deviceQueue } = this.#sources;
    const isEmpty = deviceId === undefined || !deviceQueue || deviceQueue.isEmptyNow({ userId, deviceId });
    if (!isEmpty) return undefined;
    const text = this.constant({ userId, deviceId });
    if (text instanceof Promise) {
      // `render` loads the fields again and throws the error.
      text.catch(() => undefined);
      return undefined;
    }
    feed.rememberConstantFields(deviceId, text);
    return text;
  }

  /**
   * Returns the fields.
   * @param changes the changes that the feed knows; `undefined` when it does not reach back that far
   */
  async render(
    device: DeviceRef,
    since: SyncPosition | undefined,
    upTo: number,
    changes: Changes | undefined,
  ): Promise<DeviceAnswer> {
    const range = { after: since?.position, upTo };
    const bits = changes?.user ?? 0;
    const [pending, sections] = await Promise.all([
      this.#pending(device, since, upTo),
      Promise.all(
        this.#sources.device.map(({ bit, section }) => section.fields(device, range, (bits & bit) !== 0)),
      ),
    ]);
    const messages = pending?.messages ?? [];
    return {
      hasNewData: messages.length > 0 || sections.some(({ hasNewData }) => hasNewData),
      toDevice: pending?.position ?? upTo,
      text:
        (messages.length > 0 ? `,"to_device":{"events":[${messages.join(',')}]}` : '') +
        sections.map(({ text }) => text).join(''),
    };
  }

  #pending({ userId, deviceId }: DeviceRef, since: SyncPosition | undefined, upTo: number) {
    if (deviceId === undefined) return undefined;
    return this.#sources.deviceQueue?.forSync(userId, deviceId, {
      after: since?.toDevice ?? 0,
      upTo,
      limit: maxMessages,
    });
  }
}
