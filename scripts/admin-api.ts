import { pathsOf, type Route, toMatrixSpelling } from '../src/kernel/http/index.ts';

type Schema = { readonly [keyword: string]: unknown };

/** Whether a path belongs to the admin API; the pages of the console do not. */
const isDescribed = (path: string) =>
  path.startsWith('/_server/admin/') && !/^\/_server\/admin\/ui(\/|$)/.test(path);

/** The path of the description in the repository. */
export const adminApiPath = 'docs/generated/admin-api.json';

/** Describes the admin API in OpenAPI, from the contracts of its routes. @returns the text of the file */
export function adminApiDescription(routes: readonly Route[]): string {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const described = pathsOf(route).filter(isDescribed);
    for (const [index, path] of described.entries()) {
      const template = toMatrixSpelling(path).replaceAll(/:(\w+)/g, '{$1}');
      paths[template] = {
        ...paths[template],
        [route.contract.method.toLowerCase()]: operation(route, path, index),
      };
    }
  }
  const description = {
    openapi: '3.1.0',
    info: {
      title: 'Admin API of Hearth',
      version: '1',
      description:
        'Generated from the contracts of the routes by scripts/generate-docs.ts. `_synapse` in paths may be written `_server`.',
    },
    components: {
      securitySchemes: { administrator: { type: 'http', scheme: 'bearer' } },
      schemas: {
        Error: {
          type: 'object',
          required: ['errcode', 'error'],
          properties: { errcode: { type: 'string' }, error: { type: 'string' } },
        },
      },
    },
    paths: Object.fromEntries(Object.entries(paths).sort(([one], [other]) => (one < other ? -1 : 1))),
  };
  return `${JSON.stringify(description, null, 1)}\n`;
}

/**
 * Describes one path of a route.
 * @param index the number of the path in the list of the route's paths; only the first path gets the operation id
 */
function operation({ contract }: Route, path: string, index: number): object {
  const { operationId, auth, query, body, response } = contract;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
  const fields = (query ?? {}) as { properties?: Record<string, Schema>; required?: readonly string[] };
  const parameters = [
    ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries(fields.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      required: (fields.required ?? []).includes(name) && !('default' in schema),
      schema,
    })),
  ];
  return {
    ...(index === 0 && operationId !== undefined && { operationId }),
    ...(auth === 'admin' && { security: [{ administrator: [] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { content: { 'application/json': { schema: body } } } }),
    responses: {
      '2XX': {
        description: 'Done',
        content: contentOf((response ?? {}) as Schema),
      },
      default: {
        description: 'Refused or failed',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

/** Describes a response: JSON, or a file of any type. */
const contentOf = (response: Schema) =>
  response['format'] === 'binary'
    ? { '*/*': { schema: {} } }
    : { 'application/json': { schema: closed(response) } };

/**
 * Returns a schema whose objects accept no fields besides the named ones. Objects without named fields, and objects with
 * `additionalProperties`, stay as they are.
 */
function closed(schema: Schema): Schema {
  const members = Object.entries(schema).map(([keyword, value]) => [keyword, closedMember(keyword, value)]);
  const isOpen =
    schema['properties'] === undefined || Object.keys(schema['properties'] as object).length === 0;
  return {
    ...Object.fromEntries(members),
    ...(schema['type'] === 'object' &&
      !isOpen &&
      schema['additionalProperties'] === undefined && { additionalProperties: false }),
  };
}

function closedMember(keyword: string, value: unknown): unknown {
  if (Array.isArray(value)) return keyword === 'anyOf' ? value.map((one) => closed(one as Schema)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (keyword === 'items') return closed(value as Schema);
  if (keyword !== 'properties' && keyword !== 'patternProperties') return value;
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, closed(schema as Schema)]));
}
