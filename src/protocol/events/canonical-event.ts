import {
  type CanonicalNumbers,
  canonicalJson,
  canonicalString,
  sortByCodePoint,
} from '../json/canonical-json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { redactContent, survivesRedaction } from './redaction.ts';

/** One field of an event as canonical JSON, `"key":value`: the whole field, and the part that a redaction keeps. */
interface Field {
  readonly key: string;
  /** Empty when the event lacks the field. */
  text: string;
  /** `undefined` when a redaction removes the field. */
  redacted: string | undefined;
}

/**
 * The canonical JSON of one event. The content hash, the signatures, the reference hash and the size limit
 * each cover different parts of it; every part is serialised once.
 */
export class CanonicalEvent {
  readonly #fields: readonly Field[];
  readonly #hashes: Field;
  readonly #signatures: Field;

  /**
   * Leaves out `unsigned`, which no hash or signature covers.
   * @throws MatrixError M_BAD_JSON if the event is not canonical JSON as its room version demands.
   */
  constructor(pdu: JsonObject, version: RoomVersion) {
    const numbers = version.strictCanonicalJson ? 'strict' : 'as written';
    const keys = new Set(Object.keys(pdu)).add('hashes').add('signatures');
    keys.delete('unsigned');
    this.#fields = sortByCodePoint([...keys]).map((key) => fieldOf(pdu, key, version, numbers));
    this.#hashes = this.#fields.find(({ key }) => key === 'hashes')!;
    this.#signatures = this.#fields.find(({ key }) => key === 'signatures')!;
  }

  set hashes(value: JsonObject) {
    this.#hashes.text = `"hashes":${canonicalJson(value)}`;
    this.#hashes.redacted = this.#hashes.text;
  }

  set signatures(value: JsonObject) {
    this.#signatures.text = `"signatures":${canonicalJson(value)}`;
  }

  /** The whole event without `unsigned`: the JSON that is stored, sent and measured. */
  get json(): string {
    let text = '';
    for (const { text: part } of this.#fields) {
      if (part !== '') text += text === '' ? part : `,${part}`;
    }
    return `{${text}}`;
  }

  /** The text that the content hash covers: the event without `hashes`, `signatures` and `unsigned`. */
  get contentHashInput(): string {
    let text = '';
    for (const field of this.#fields) {
      if (field === this.#hashes || field === this.#signatures || field.text === '') continue;
      text += text === '' ? field.text : `,${field.text}`;
    }
    return `{${text}}`;
  }

  /**
   * The text that signatures and the reference hash cover: the redacted event without `signatures` and
   * `unsigned`.
   */
  get signingInput(): string {
    let text = '';
    for (const field of this.#fields) {
      if (field === this.#signatures || !field.redacted) continue;
      text += text === '' ? field.redacted : `,${field.redacted}`;
    }
    return `{${text}}`;
  }
}

function fieldOf(pdu: JsonObject, key: string, version: RoomVersion, numbers: CanonicalNumbers): Field {
  const value = pdu[key];
  if (value === undefined) return { key, text: '', redacted: undefined };
  const name = canonicalString(key);
  const text = `${name}:${canonicalJson(value, numbers)}`;
  if (key === 'content' && isJsonObject(value)) {
    return { key, text, redacted: redactedContent(pdu.type, value, version, numbers, text) };
  }
  return { key, text, redacted: survivesRedaction(key, version) ? text : undefined };
}

function redactedContent(
  type: JsonValue | undefined,
  content: JsonObject,
  version: RoomVersion,
  numbers: CanonicalNumbers,
  whole: string,
): string {
  const redacted = redactContent(String(type), content, version);
  return redacted === content ? whole : `"content":${canonicalJson(redacted, numbers)}`;
}
