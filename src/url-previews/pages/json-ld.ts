import { plain } from './read-page.ts';

/** The metadata of a page in JSON-LD. */
export interface LinkedData {
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly siteName?: string | undefined;
  readonly image?: string | undefined;
}

/** Maximum number of objects that are read from a JSON-LD list. */
const maxObjects = 200;

/** Maximum number of characters of a value that are read. */
const maxValue = 4_096;

/**
 * Reads the first object with a headline, or else the first object with a name and a description. Source:
 * https://schema.org/Article
 */
export function describeJsonLd(scripts: readonly string[]): LinkedData {
  const objects = scripts.flatMap((script) => objectsIn(parse(script)));
  const article = objects.find(({ headline }) => textOf(headline) !== undefined);
  const described =
    article ?? objects.find((object) => textOf(object['name']) && textOf(object['description']));
  if (described === undefined) return {};
  return {
    title: textOf(described['headline']) ?? textOf(described['name']),
    description: textOf(described['description']),
    siteName: textOf(fieldOf(described['publisher'], 'name')),
    image: imageOf(described['image']),
  };
}

type JsonObject = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null;

function parse(script: string): unknown {
  try {
    return JSON.parse(script);
  } catch {
    return undefined;
  }
}

/** Returns an object or the objects of a list, each with the objects of its `@graph`. */
function objectsIn(value: unknown): JsonObject[] {
  const list = Array.isArray(value) ? value.slice(0, maxObjects) : [value];
  return list.filter(isObject).flatMap((object) => {
    const graph = object['@graph'];
    return Array.isArray(graph) ? [object, ...graph.slice(0, maxObjects).filter(isObject)] : [object];
  });
}

const fieldOf = (value: unknown, name: string) => {
  const object: unknown = Array.isArray(value) ? value[0] : value;
  return isObject(object) ? object[name] : undefined;
};

const textOf = (value: unknown) =>
  typeof value === 'string' ? plain(value.slice(0, maxValue)) || undefined : undefined;

function imageOf(value: unknown): string | undefined {
  const image: unknown = Array.isArray(value) ? value[0] : value;
  return textOf(image) ?? textOf(fieldOf(image, 'url'));
}
