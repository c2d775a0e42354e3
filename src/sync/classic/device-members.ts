import type { SyncPosition } from '../../kernel/streams/index.ts';
import type { DeviceRef } from '../../sync-contract/index.ts';
import type { Changes, Feed } from '../feeds/feed.ts';
import { bitsOf, type SourceList } from '../sources/source-list.ts';

/** What an answer says about devices. */
export interface DeviceAnswer {
  /** Members of the answer as JSON text, each with a comma in front. */
  readonly text: string;
  /** Whether it is a reason to answer at all. */
  readonly isNews: boolean;
  /** The position up to which the device has the messages to it. */
  readonly toDevice: number;
}

/** Most messages to a device in one answer; the next sync brings the others. */
const maxMessages = 100;

/** The members at the top of an answer that are about one device, and the messages that wait for it. */
export class DeviceMembers {
  readonly #sources: Pick<SourceList, 'device' | 'deviceQueue'>;

  /** What changes of the user are about these members. */
  readonly bits: number;

  constructor(sources: Pick<SourceList, 'device' | 'deviceQueue'>) {
    this.#sources = sources;
    this.bits = bitsOf(sources.device);
  }

  /** Whether it is certain, without a query, that there is nothing to say. */
  isQuiet(since: SyncPosition): boolean {
    if (since.toDevice !== since.position) return false;
    for (const { section } of this.#sources.device) if (!section.isQuiet(since.position)) return false;
    return true;
  }

  /** The device has received everything up to its token. @returns `undefined` when there is nothing to do */
  acknowledge({ userId, deviceId }: DeviceRef, { toDevice }: SyncPosition): Promise<void> | undefined {
    const { deviceQueue } = this.#sources;
    if (!deviceQueue || deviceId === undefined || deviceQueue.isEmptyNow({ userId, deviceId }))
      return undefined;
    return deviceQueue.acknowledge(userId, deviceId, toDevice);
  }

  /** The members that every answer has, at once when they are in memory. */
  constant(device: DeviceRef): string | Promise<string> {
    let text = '';
    for (const { section } of this.#sources.device) {
      const members = section.constant(device);
      if (members instanceof Promise) return members.then(() => this.#loadConstant(device));
      text += members;
    }
    return text;
  }

  async #loadConstant(device: DeviceRef): Promise<string> {
    return (await Promise.all(this.#sources.device.map(({ section }) => section.constant(device)))).join('');
  }

  /**
   * `constant`, when it is known without a query, as well as that no message waits for the device. The feed remembers
   * it until something changes for the user.
   */
  quietMembers({ userId, deviceId }: DeviceRef, feed: Feed): string | undefined {
    const known = feed.constantMembers(deviceId);
    if (known !== undefined) return known;
    const { deviceQueue } = this.#sources;
    const isEmpty = deviceId === undefined || !deviceQueue || deviceQueue.isEmptyNow({ userId, deviceId });
    if (!isEmpty) return undefined;
    const text = this.constant({ userId, deviceId });
    if (text instanceof Promise) {
      // `render` loads the members as well, and gets the error.
      text.catch(() => undefined);
      return undefined;
    }
    feed.rememberConstantMembers(deviceId, text);
    return text;
  }

  /** @param changes what the feed knows of; `undefined` when it does not reach back that far */
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
        this.#sources.device.map(({ bit, section }) => section.members(device, range, (bits & bit) !== 0)),
      ),
    ]);
    const messages = pending?.messages ?? [];
    return {
      isNews: messages.length > 0 || sections.some(({ isNews }) => isNews),
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
