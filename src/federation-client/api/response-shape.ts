import { isEventId, isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import { MalformedResponse } from '../requests/errors.ts';

/** Reads the members of another server's answer; what is not as it should be is a `MalformedResponse`. */
export class ResponseShape {
  readonly #server: string;
  readonly #answer: JsonObject;

  constructor(server: string, answer: JsonObject) {
    this.#server = server;
    this.#answer = answer;
  }

  object(name: string): JsonObject {
    const value = this.#answer[name];
    if (!isJsonObject(value)) throw this.#malformed(`${name} is no object`);
    return value;
  }

  optionalString(name: string): string | undefined {
    const value = this.#answer[name];
    if (value !== undefined && typeof value !== 'string') throw this.#malformed(`${name} is no string`);
    return value;
  }

  /** A list of anything. @param most how long it may be */
  list(name: string, most: number): readonly JsonValue[] {
    const value = this.#answer[name];
    if (!Array.isArray(value)) throw this.#malformed(`${name} is no list`);
    if (value.length > most) throw this.#malformed(`${name} has more than ${most} entries`);
    return value as readonly JsonValue[];
  }

  /** The only entry of a list. */
  only(name: string): JsonValue {
    const [entry] = this.list(name, 1);
    if (entry === undefined) throw this.#malformed(`${name} is empty`);
    return entry;
  }

  eventIds(name: string, most: number): readonly string[] {
    const ids = this.list(name, most);
    if (!ids.every(isEventId)) throw this.#malformed(`${name} holds something that is no event id`);
    return ids as readonly string[];
  }

  eventId(name: string): string {
    const value = this.#answer[name];
    if (!isEventId(value)) throw this.#malformed(`${name} is no event id`);
    return value;
  }

  integer(name: string): number {
    const value = this.#answer[name];
    if (!Number.isSafeInteger(value)) throw this.#malformed(`${name} is no integer`);
    return value as number;
  }

  #malformed(what: string): MalformedResponse {
    return new MalformedResponse(this.#server, what);
  }
}
