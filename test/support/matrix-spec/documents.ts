import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { parse } from 'yaml';

/** Where the files of the specification are, with a slash at the end. */
export const SPECIFICATION = new URL('../../matrix-spec/', import.meta.url);

/** A place in a file: the file's URL and in its fragment a JSON pointer. */
export type Place = URL;

/** What stands at a place after references were followed, and where that is. */
export interface Resolved {
  readonly place: Place;
  readonly value: unknown;
}

/** The documents of the specification, read and parsed when they are first needed, and the validators for parts. */
export class Documents {
  readonly #documents = new Map<string, unknown>();
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });

  constructor() {
    ajvFormats.default(this.#ajv);
  }

  /** The document in a file, YAML or JSON. Throws when there is no such file. */
  document(file: URL): unknown {
    const key = withoutFragment(file);
    if (!this.#documents.has(key)) this.#documents.set(key, parse(readFileSync(new URL(key), 'utf8')));
    return this.#documents.get(key);
  }

  /** What stands at a place. Follows references, also on the way; undefined when there is nothing. */
  resolve(place: Place): Resolved {
    let current: Resolved = { place: new URL(withoutFragment(place)), value: this.document(place) };
    for (const token of pointerTokens(place)) {
      const { value } = current;
      const next = isObject(value) && Object.hasOwn(value, token) ? value[token] : undefined;
      current = this.#followed({ place: childOf(current.place, token), value: next });
    }
    return current;
  }

  #followed(resolved: Resolved): Resolved {
    const { place, value } = resolved;
    if (!isObject(value) || typeof value['$ref'] !== 'string') return resolved;
    return this.resolve(new URL(value['$ref'], place));
  }

  /** The validator for the schema at a place. */
  validator(place: Place): ValidateFunction {
    const known = this.#validators.get(place.href);
    if (known !== undefined) return known;
    this.#register(place);
    const validator = this.#ajv.compile({ $ref: place.href });
    this.#validators.set(place.href, validator);
    return validator;
  }

  /** Makes a document known to the validator, with all that it refers to. */
  #register(file: URL): void {
    const key = withoutFragment(file);
    if (this.#ajv.schemas[key] !== undefined) return;
    const document = this.document(file);
    this.#ajv.addSchema(document as object, key);
    for (const reference of referencesIn(document)) this.#register(new URL(reference, key));
  }
}

/** The place of a property of what stands at a place. */
export function childOf(place: Place, ...tokens: readonly string[]): Place {
  const escaped = tokens.map((token) =>
    encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1')),
  );
  return new URL([place.hash || '#', ...escaped].join('/'), place);
}

function pointerTokens(place: Place): string[] {
  const tokens = decodeURIComponent(place.hash).split('/').slice(1);
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function withoutFragment(place: URL): string {
  return place.href.slice(0, place.href.length - place.hash.length).replace(/#$/, '');
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** All references to other files, but for those in examples, which are no schemas. */
function referencesIn(value: unknown): string[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    if (key === '$ref' && typeof child === 'string') return child.startsWith('#') ? [] : [child];
    return key === 'example' || key === 'examples' ? [] : referencesIn(child);
  });
}
