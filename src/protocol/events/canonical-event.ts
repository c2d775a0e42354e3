import {
  type CanonicalNumbers,
  canonicalJson,
  canonicalString,
  sortByCodePoint,
} from '../json/canonical-json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { redactContent, survivesRedaction } from './redaction.ts';

/** One member of an event as canonical JSON, `"key":value`: in full, and as a redaction leaves it. */
interface Member {
  readonly key: string;
  text: string;
  redacted: string | undefined;
}

/**
 * The canonical JSON of one event. The content hash, the signatures, the reference hash and the size limit
 * each cover different parts of it; every part is serialised once.
 */
export class CanonicalEvent {
  readonly #members: readonly Member[];
  readonly #hashes: Member;
  readonly #signatures: Member;

  /**
   * Leaves out `unsigned`, which no hash or signature covers.
   * @throws MatrixError M_BAD_JSON if the event is not canonical JSON as its room version demands.
   */
  constructor(pdu: JsonObject, version: RoomVersion) {
    const numbers = version.strictCanonicalJson ? 'strict' : 'as written';
    const keys = new Set(Object.keys(pdu)).add('hashes').add('signatures');
    keys.delete('unsigned');
    this.#members = sortByCodePoint([...keys]).map((key) => member(pdu, key, version, numbers));
    this.#hashes = this.#members.find(({ key }) => key === 'hashes')!;
    this.#signatures = this.#members.find(({ key }) => key === 'signatures')!;
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
    for (const { text: part } of this.#members) {
      if (part !== '') text += text === '' ? part : `,${part}`;
    }
    return `{${text}}`;
  }

  /** The text that the content hash covers: the event without `hashes`, `signatures` and `unsigned`. */
  get contentHashInput(): string {
    let text = '';
    for (const member of this.#members) {
      if (member === this.#hashes || member === this.#signatures || member.text === '') continue;
      text += text === '' ? member.text : `,${member.text}`;
    }
    return `{${text}}`;
  }

  /**
   * The text that signatures and the reference hash cover: the redacted event without `signatures` and
   * `unsigned`.
   */
  get signingInput(): string {
    let text = '';
    for (const member of this.#members) {
      if (member === this.#signatures || !member.redacted) continue;
      text += text === '' ? member.redacted : `,${member.redacted}`;
    }
    return `{${text}}`;
  }
}

function member(pdu: JsonObject, key: string, version: RoomVersion, numbers: CanonicalNumbers): Member {
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
