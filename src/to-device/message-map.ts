import { invalidParam, isJsonObject, isUserId, type JsonObject, tooLarge } from '../protocol/index.ts';

/** User id to device id (or `*`, all of the user's devices) to the content of the message. */
export type MessageMap = ReadonlyMap<string, ReadonlyMap<string, JsonObject>>;

/** Stands for all devices of a user that are not named. */
export const allDevices = '*';

/** UTF-8 bytes of the content of one message: as much as an event may have. */
export const maxContentBytes = 65_536;

/** Characters of a type, and of a transaction id. */
const maxNameLength = 255;

/**
 * Reads the messages of `PUT /sendToDevice`.
 * @throws MatrixError M_INVALID_PARAM, M_TOO_LARGE
 */
export function parseMessageMap(messages: JsonObject): MessageMap {
  const parsed = new Map<string, Map<string, JsonObject>>();
  for (const [userId, devices] of Object.entries(messages)) {
    if (!isUserId(userId)) throw invalidParam(`'${userId.slice(0, maxNameLength)}' is not a user id`);
    if (!isJsonObject(devices)) throw invalidParam(`The messages for ${userId} must be an object`);
    const contents = new Map<string, JsonObject>();
    for (const [deviceId, content] of Object.entries(devices)) {
      if (!isJsonObject(content)) throw invalidParam(`A message for ${userId} is not an object`);
      contents.set(deviceId, content);
    }
    parsed.set(userId, contents);
  }
  return parsed;
}

/** The message as the device will see it. Throws MatrixError M_TOO_LARGE. */
export function messageText(sender: string, type: string, content: JsonObject): string {
  const text = JSON.stringify(content);
  if (Buffer.byteLength(text) > maxContentBytes) {
    throw tooLarge(`The content of a message has at most ${maxContentBytes} bytes`);
  }
  return `{"sender":${JSON.stringify(sender)},"type":${JSON.stringify(type)},"content":${text}}`;
}

/** Whether the content of a message is not too large. */
export const isContentWithinLimit = (content: JsonObject) =>
  Buffer.byteLength(JSON.stringify(content)) <= maxContentBytes;

/** @throws MatrixError M_INVALID_PARAM unless it is fit for a type or a transaction id */
export function checkNameLength(name: string, what: string): void {
  if (name === '' || name.length > maxNameLength) {
    throw invalidParam(`${what} has between 1 and ${maxNameLength} characters`);
  }
}
