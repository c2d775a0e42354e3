import type { DeviceLists, KeyCounts, KeySupply } from '../../e2ee/index.ts';
import type { SyncPosition } from '../../kernel/streams/index.ts';
import type { MessageQueues } from '../../to-device/index.ts';
import { type Changes, UserPart } from '../feeds/feed.ts';

/** Where a sync finds what concerns devices. */
export interface DeviceSources {
  readonly queues: MessageQueues;
  readonly deviceLists: DeviceLists;
  readonly keyCounts: KeyCounts;
}

/** What an answer says about devices. */
export interface DeviceAnswer {
  /** Members of the answer as JSON text, each with a comma in front. */
  readonly text: string;
  /** Whether it is a reason to answer at all. */
  readonly isNews: boolean;
  /** Up to where messages to the device were told. */
  readonly toDevice: number;
}

/** Most messages to a device in one answer; the next sync brings the others. */
const maxMessages = 100;

const noKeys: KeySupply = { oneTimeKeyCounts: {}, unusedFallbackKeyTypes: [] };

/** What was made of the counts in memory: an idle client is told the same again and again. */
const texts = new WeakMap<KeySupply, string>();

function keysText(supply: KeySupply): string {
  const known = texts.get(supply);
  if (known !== undefined) return known;
  const text =
    `,"device_one_time_keys_count":${JSON.stringify(supply.oneTimeKeyCounts)}` +
    `,"device_unused_fallback_key_types":${JSON.stringify(supply.unusedFallbackKeyTypes)}`;
  texts.set(supply, text);
  return text;
}

/**
 * Messages to a device, whose keys to ask for again, and how many of its own keys are left.
 * Source: client-server API, "Send-to-Device messaging" and the extensions to `/sync` of "End-to-End Encryption".
 */
export class DevicePart {
  readonly #sources: DeviceSources;

  constructor(sources: DeviceSources) {
    this.#sources = sources;
  }

  /** Whether there is surely nothing to say, without a query. */
  isQuiet(since: SyncPosition): boolean {
    return since.toDevice === since.position && this.#sources.deviceLists.isQuiet(since.position);
  }

  /** The device has got everything up to its token. @returns `undefined` when nothing had to be done */
  acknowledge(
    userId: string,
    deviceId: string | undefined,
    { toDevice }: SyncPosition,
  ): Promise<void> | undefined {
    const { queues } = this.#sources;
    if (deviceId === undefined || queues.isEmptyNow({ userId, deviceId })) return undefined;
    return queues.acknowledge(userId, deviceId, toDevice);
  }

  /**
   * How many keys the device has left, which every answer says: clients take what is not named for used up. Members of
   * the answer as JSON text, each with a comma in front.
   */
  async keys(userId: string, deviceId: string | undefined): Promise<string> {
    if (deviceId === undefined) return keysText(noKeys);
    return keysText(await this.#sources.keyCounts.supply(userId, deviceId));
  }

  /** `keys`, if it is known without a query that no message waits for the device, and what its keys are. */
  quietNow(userId: string, deviceId: string | undefined): string | undefined {
    if (deviceId === undefined) return keysText(noKeys);
    if (!this.#sources.queues.isEmptyNow({ userId, deviceId })) return undefined;
    const supply = this.#sources.keyCounts.peek(userId, deviceId);
    return supply && keysText(supply);
  }

  /** @param changes what the feed knows of; `undefined` when it does not reach back that far */
  async render(
    { userId, deviceId }: { userId: string; deviceId: string | undefined },
    since: SyncPosition | undefined,
    upTo: number,
    changes: Changes | undefined,
  ): Promise<DeviceAnswer> {
    const [lists, keys, pending] = await Promise.all([
      this.#lists(userId, since, upTo),
      this.keys(userId, deviceId),
      deviceId === undefined ? undefined : this.#pending(userId, deviceId, since, upTo),
    ]);
    const keysChanged = changes !== undefined && (changes.user & UserPart.keys) !== 0;
    const messages = pending?.messages ?? [];
    return {
      isNews: lists !== undefined || keysChanged || messages.length > 0,
      toDevice: pending?.position ?? upTo,
      text:
        (messages.length > 0 ? `,"to_device":{"events":[${messages.join(',')}]}` : '') +
        (lists === undefined ? '' : `,"device_lists":${JSON.stringify(lists)}`) +
        keys,
    };
  }

  #pending(userId: string, deviceId: string, since: SyncPosition | undefined, upTo: number) {
    return this.#sources.queues.forSync(userId, deviceId, {
      after: since?.toDevice ?? 0,
      upTo,
      limit: maxMessages,
    });
  }

  /** A client that begins asks for everybody's keys anyway. */
  async #lists(userId: string, since: SyncPosition | undefined, upTo: number) {
    const { deviceLists } = this.#sources;
    if (since === undefined || deviceLists.isQuiet(since.position)) return undefined;
    const lists = await deviceLists.changes(userId, since.position, upTo);
    return lists.changed.length + lists.left.length > 0 ? lists : undefined;
  }
}
