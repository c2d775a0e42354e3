import { createHash } from 'node:crypto';
import type { AnyWriter } from '../../kernel/database/index.ts';
import { isJsonObject, isServerName, isUserId, type JsonObject, serverOfUser } from '../../protocol/index.ts';
import {
  isContentWithinLimit,
  type MessageMap,
  type RemoteDelivery,
  type ToDevice,
} from '../../to-device/index.ts';
import type { EduHandler } from '../edus/edu-handlers.ts';
import { isEduUserOf } from '../edus/edu-users.ts';
import type { Outbox } from './device-list-announcer.ts';
import type { ToDevicePace } from './to-device-pace.ts';
import type { UnprovenRecipients } from './unproven-recipients.ts';

/**
 * Maximum total length of the messages in one EDU, in UTF-16 units. It is small because a transaction holds up to 100
 * EDUs. A single longer message gets an EDU of its own.
 */
const maxEduLength = 65_536;

/** Length of a message id in the specification. */
const idLength = 32;

/** Maximum accepted length of a message id. */
const maxIdLength = 255;

/** Maximum length of a type. */
const maxTypeLength = 255;

/** Maximum number of messages in one received EDU; further messages are dropped. */
const maxMessages = 10_000;

/** Sends to-device messages to users of other servers. Source: server-server API, "Send-to-device messaging". */
export class DirectToDeviceSender implements RemoteDelivery {
  readonly #outbox: Outbox;
  readonly #unproven: Pick<UnprovenRecipients, 'allowed'>;

  constructor(outbox: Outbox, unproven: Pick<UnprovenRecipients, 'allowed'>) {
    this.#outbox = outbox;
    this.#unproven = unproven;
  }

  /**
   * Adds the messages to the outbox as EDUs: at least one EDU for each server with a recipient. Drops messages to
   * servers that have never answered when the sender has sent to too many of these (`UnprovenRecipients`).
   */
  async enqueue(
    writer: AnyWriter,
    _publish: unknown,
    { sender, type, messageId, messages }: Parameters<RemoteDelivery['enqueue']>[2],
  ): Promise<void> {
    const servers = Map.groupBy(messages, ([userId]): string => serverOfUser(userId));
    const allowed = await this.#unproven.allowed(writer, sender, [...servers.keys()].filter(isServerName));
    for (const [server, users] of servers) {
      if (!allowed.has(server)) continue;
      for (const [part, partMessages] of splitMessages(users).entries()) {
        const content = { sender, type, message_id: idOf(messageId, part), messages: partMessages };
        await this.#outbox.addForAll(writer, [server], { type: 'm.direct_to_device', content });
      }
    }
  }
}

/** Splits messages into parts of at most `maxEduLength`. A single longer message becomes a part of its own. */
function splitMessages(users: readonly (readonly [string, ReadonlyMap<string, JsonObject>])[]): JsonObject[] {
  const parts: Record<string, Record<string, JsonObject>>[] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const [userId, contents] of users) {
    for (const [deviceId, content] of contents) {
      const length = userId.length + deviceId.length + JSON.stringify(content).length;
      if (size + length > maxEduLength) {
        parts.push({});
        size = 0;
      }
      size += length;
      const part = parts.at(-1)!;
      part[userId] = { ...part[userId], [deviceId]: content };
    }
  }
  return parts as unknown as JsonObject[];
}

/** Returns the id of a part. Parts of a message have different ids; a repeated message has the same ids again. */
function idOf(messageId: string, part: number): string {
  if (part === 0) return messageId.slice(0, idLength);
  return createHash('sha256').update(`${messageId} ${part}`).digest('base64url').slice(0, idLength);
}

export interface DirectToDeviceDeps {
  readonly toDevice: ToDevice;
  readonly serverName: string;
  readonly pace: ToDevicePace;
  /** Called with a remote sender and the device id that a message names as the sender's device. */
  readonly sawDevice: (userId: string, deviceId: string) => Promise<void>;
}

/** Handles `m.direct_to_device` of other servers: queues messages for local users' devices, each message once. */
export function directToDeviceHandler({
  toDevice,
  serverName,
  pace,
  sawDevice,
}: DirectToDeviceDeps): EduHandler {
  return async (origin, content) => {
    const { sender, type, message_id: id } = content;
    if (!isEduUserOf(origin, sender)) return;
    if (!isText(type, maxTypeLength) || !isText(id, maxIdLength)) return;
    const messages = readMessages(content['messages'], serverName);
    if (messages.size === 0) return;
    const from = { name: origin, deviceId: undefined };
    const queued = await toDevice.send({ sender, origin: from, txnId: id, type, messages });
    const device = type in deviceFields ? firstContent(messages)?.[deviceFields[type]!] : undefined;
    if (typeof device === 'string' && !device.includes('\0')) await sawDevice(sender, device);
    await pace.countAndWait(origin, queued);
  };
}

/** The message types with the sender's device id in their content, and the name of the field that contains it. */
const deviceFields: Readonly<Record<string, string>> = {
  __proto__: null!,
  'm.room_key_request': 'requesting_device_id',
  'm.key.verification.request': 'from_device',
  'm.key.verification.start': 'from_device',
};

/** Returns the well-formed messages for local users. */
function readMessages(value: unknown, serverName: string): MessageMap {
  const messages = new Map<string, Map<string, JsonObject>>();
  let count = 0;
  for (const [userId, devices] of Object.entries(isJsonObject(value) ? value : {})) {
    if (!isUserId(userId) || serverOfUser(userId) !== serverName || !isJsonObject(devices)) continue;
    const contents = new Map<string, JsonObject>();
    for (const [deviceId, content] of Object.entries(devices)) {
      if (++count > maxMessages) return messages;
      if (isJsonObject(content) && isContentWithinLimit(content)) contents.set(deviceId, content);
    }
    if (contents.size > 0) messages.set(userId, contents);
  }
  return messages;
}

function firstContent(messages: MessageMap): JsonObject | undefined {
  for (const contents of messages.values()) for (const content of contents.values()) return content;
  return undefined;
}

const isText = (value: unknown, maxLength: number): value is string =>
  typeof value === 'string' && value !== '' && value.length <= maxLength;
