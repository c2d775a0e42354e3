import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export type JsonObject = { readonly [key: string]: unknown };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A value of the specification's files and its URL: the file's, with a JSON pointer as fragment. */
export interface Located {
  readonly url: URL;
  readonly value: unknown;
}

/** The files of the specification, parsed when they are first needed. */
export class SpecSource {
  /** Parsed files by URL. */
  readonly #documents = new Map<string, unknown>();

  /**
   * Returns the value at a URL, undefined when the file has none there. Follows references on the way and at the end.
   * The returned URL is that of the file to which they lead: references in the value are relative to it.
   */
  at(url: URL): Located {
    const tokens = decodeURIComponent(url.hash).split('/').slice(1);
    let located: Located = { url, value: this.#document(url) };
    for (const token of tokens) {
      located = this.follow({ url: located.url, value: childOf(located.value, token) });
    }
    return located;
  }

  /** Returns the value that a reference leads to, or the value itself when it is not a reference. */
  follow(located: Located): Located {
    const { url, value } = located;
    const reference = isObject(value) ? value['$ref'] : undefined;
    return typeof reference === 'string' ? this.follow(this.at(new URL(reference, url))) : located;
  }

  /** Returns the members of an object, or of the object that a reference leads to. Follows references among the members. */
  members(located: Located): [name: string, member: Located][] {
    const { url, value } = this.follow(located);
    if (!isObject(value)) return [];
    return Object.entries(value).map(([name, member]) => [name, this.follow({ url, value: member })]);
  }

  /** Returns one member of an object; its value is undefined when there is none. */
  member(located: Located, name: string): Located {
    const { url, value } = this.follow(located);
    return this.follow({ url, value: childOf(value, name) });
  }

  /** Returns the content of the file at a URL, whose fragment is ignored. */
  #document(url: URL): unknown {
    const file = new URL(url);
    file.hash = '';
    if (!this.#documents.has(file.href)) this.#documents.set(file.href, parse(readFileSync(file, 'utf8')));
    return this.#documents.get(file.href);
  }
}

/** Returns the member of an object or the item of an array that a token of a JSON pointer names. */
function childOf(value: unknown, token: string): unknown {
  const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
  if (Array.isArray(value)) return value[Number(name)];
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
