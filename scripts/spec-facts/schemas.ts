import { isObject, type JsonObject, type Located, type SpecSource } from './source.ts';

/** Reduces the value of a keyword. @param url the URL of the schema with the keyword */
type ReduceOperand = (operand: unknown, url: URL) => unknown;

/** Keywords that inform readers; validators ignore them. */
const ignored = /^(title|description|examples?|default|deprecated|\$schema|x-.*)$/;

/** Folders, and members in JSON pointers, that are left out of the names of schemas. */
const partsLeftOut = new Set([
  'api',
  'definitions',
  'components',
  'schema',
  'schemas',
  'errors',
  'core-event-schema',
]);

/**
 * Reduces the specification's schemas to the parts that validation uses, and collects the schemas that they refer to.
 * Members are in alphabetical order, so that a new version of the specification makes a small diff.
 */
export class SchemaCollector {
  readonly #source: SpecSource;
  readonly #root: URL;
  /** The URLs of the collected schemas by name. */
  readonly #urls = new Map<string, string>();
  /** By name. */
  readonly #schemas = new Map<string, JsonObject>();

  /** @param root the folder of the specification, with a slash at the end */
  constructor(source: SpecSource, root: URL) {
    this.#source = source;
    this.#root = root;
  }

  /** Returns the collected schemas, in the order of their names. `$ref` of a reduced schema is such a name. */
  collected(): JsonObject {
    return Object.fromEntries([...this.#schemas].sort(byName));
  }

  /** Returns a schema with the keywords of validation only. @throws when the schema has a keyword that this script does not know. */
  reduce({ url, value }: Located): JsonObject {
    const reduced = Object.entries(value as JsonObject)
      .filter(([keyword]) => !ignored.test(keyword))
      .map(([keyword, operand]): [string, unknown] => {
        const reduceOperand = this.#keywords[keyword];
        if (reduceOperand === undefined) throw new Error(`${url.href}: unknown keyword ${keyword}`);
        return [keyword, reduceOperand(operand, url)];
      });
    const order = Object.keys(this.#keywords);
    const meaningful = reduced.filter((entry) => !isWithoutEffect(entry));
    const sorted = meaningful.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
    return withoutWrapper(Object.fromEntries(sorted));
  }

  /** The keywords of validation, in the order in which they are written. */
  readonly #keywords: Readonly<Record<string, ReduceOperand>> = {
    $ref: (reference, url) => this.#nameOf(new URL(String(reference), url)),
    type: unchanged,
    format: unchanged,
    const: unchanged,
    enum: unchanged,
    pattern: unchanged,
    minimum: unchanged,
    maximum: unchanged,
    minLength: unchanged,
    maxLength: unchanged,
    minItems: unchanged,
    maxItems: unchanged,
    minProperties: unchanged,
    maxProperties: unchanged,
    items: (schema, url) => this.#reduceNested(schema, url),
    propertyNames: (schema, url) => this.#reduceNested(schema, url),
    properties: (schemas, url) => this.#reduceMembers(schemas, url),
    patternProperties: (schemas, url) => this.#reduceMembers(schemas, url),
    additionalProperties: (schema, url) => this.#reduceNested(schema, url),
    required: (names) => (names as string[]).toSorted(),
    allOf: (schemas, url) => (schemas as unknown[]).map((schema) => this.#reduceNested(schema, url)),
    anyOf: (schemas, url) => (schemas as unknown[]).map((schema) => this.#reduceNested(schema, url)),
    oneOf: (schemas, url) => (schemas as unknown[]).map((schema) => this.#reduceNested(schema, url)),
  };

  #reduceNested(value: unknown, url: URL): unknown {
    return isObject(value) ? this.reduce({ url, value }) : value;
  }

  /** Reduces schemas that are members of an object, and sorts them by name. */
  #reduceMembers(schemas: unknown, url: URL): JsonObject {
    const sorted = Object.entries(schemas as JsonObject).sort(byName);
    return Object.fromEntries(sorted.map(([name, schema]) => [name, this.#reduceNested(schema, url)]));
  }

  /** The name of the schema at a URL. Collects the schema when it is new. */
  #nameOf(url: URL): string {
    const name = schemaName(url, this.#root);
    const taken = this.#urls.get(name);
    if (taken === undefined) {
      this.#urls.set(name, url.href);
      this.#schemas.set(name, this.reduce(this.#source.at(url)));
    } else if (taken !== url.href) {
      throw new Error(`${taken} and ${url.href} are both named ${name}`);
    }
    return name;
  }
}

/** `client-server.push_rule` for `api/client-server/definitions/push_rule.yaml`. */
function schemaName({ pathname, hash }: URL, root: URL): string {
  const folders = pathname
    .slice(root.pathname.length)
    .replace(/\.yaml$/, '')
    .split('/');
  const member = hash.split('/').slice(1);
  return [...folders, ...member].filter((part) => !partsLeftOut.has(part)).join('.');
}

function byName([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

const unchanged: ReduceOperand = (operand) => operand;

const isWithoutEffect = ([keyword, operand]: [string, unknown]): boolean =>
  (keyword === 'properties' || keyword === 'required') && Object.keys(operand as object).length === 0;

/** Replaces an `allOf` that has a single schema, and no keyword beside it, by that schema. */
function withoutWrapper(schema: JsonObject): JsonObject {
  const { allOf, ...rest } = schema;
  const isWrapper = Array.isArray(allOf) && allOf.length === 1 && Object.keys(rest).length === 0;
  return isWrapper ? allOf[0] : schema;
}
