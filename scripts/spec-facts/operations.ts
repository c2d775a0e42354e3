import { globSync } from 'node:fs';
import { basename } from 'node:path';
import type { SchemaCollector } from './schemas.ts';
import { isObject, type JsonObject, type Located, type SpecSource } from './source.ts';

const methods = ['get', 'put', 'post', 'delete', 'head', 'options', 'patch'];

/** An operation in the specification's files. */
export interface SourceOperation {
  readonly operationId: string;
  readonly method: string;
  /** The path template with the API's base path. */
  readonly path: string;
  /** The name of the file, which is about one subject: `account_deactivation`. */
  readonly group: string;
  readonly definition: Located;
  /** The parameters that all methods of the path have. */
  readonly commonParameters: Located;
}

/** Returns the operations of one API, in alphabetical order of their ids. @param root the folder of the specification */
export function findOperations(source: SpecSource, root: URL, api: string): SourceOperation[] {
  const files = globSync(`api/${api}/*.yaml`, { cwd: root });
  const operations = files.flatMap((file) => operationsOf(source, new URL(file, root)));
  return operations.sort((a, b) => (a.operationId < b.operationId ? -1 : 1));
}

function operationsOf(source: SpecSource, file: URL): SourceOperation[] {
  const group = basename(file.pathname, '.yaml');
  const base = source.at(new URL('#/servers/0/variables/basePath/default', file)).value ?? '';
  return source.members(source.at(new URL('#/paths', file))).flatMap(([path, byMethod]) =>
    source
      .members(byMethod)
      .filter(([method]) => methods.includes(method))
      .map(([method, definition]) => ({
        operationId: String(source.member(definition, 'operationId').value),
        method: method.toUpperCase(),
        path: `${base}${path}`,
        group,
        definition,
        commonParameters: source.member(byMethod, 'parameters'),
      })),
  );
}

/** Returns the description of an operation for the data files. */
export function operationFacts(
  source: SpecSource,
  schemas: SchemaCollector,
  operation: SourceOperation,
): JsonObject {
  const { method, path, group, definition } = operation;
  const deprecated = source.member(definition, 'deprecated').value;
  const security = source.member(definition, 'security').value;
  const request = source.member(definition, 'requestBody');
  const parameters = parameterFacts(source, schemas, operation);
  return {
    method,
    path,
    group,
    ...(deprecated === true && { deprecated }),
    ...(Array.isArray(security) && {
      security: security.map((schemes) => Object.keys(schemes).join('+') || 'none'),
    }),
    ...(Object.keys(parameters).length > 0 && { parameters }),
    ...(request.value !== undefined && {
      ...(source.member(request, 'required').value === true && { bodyRequired: true }),
      body: contentFacts(source, schemas, request),
    }),
    responses: Object.fromEntries(
      source
        .members(source.member(definition, 'responses'))
        .map(([status, response]) => [status, contentFacts(source, schemas, response)]),
    ),
  };
}

/** Returns the parameters by their place (`path`, `query` or `header`). Each place is a schema of an object. */
function parameterFacts(
  source: SpecSource,
  schemas: SchemaCollector,
  { definition, commonParameters }: SourceOperation,
): JsonObject {
  const parametersOfOperation = source.member(definition, 'parameters');
  const parameters = [commonParameters, parametersOfOperation].flatMap(({ url, value }) =>
    Array.isArray(value) ? value.map((parameter) => source.follow({ url, value: parameter })) : [],
  );
  const byName = parameters
    .map((parameter) => ({
      parameter,
      ...(parameter.value as { name: string; in: string; required?: true }),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const places = ['path', 'query', 'header'].flatMap((place) => {
    const ofPlace = byName.filter((parameter) => parameter.in === place);
    if (ofPlace.length === 0) return [];
    const properties = ofPlace.map(({ name, parameter }) => {
      const value = (parameter.value as JsonObject)['schema'];
      return [name, schemas.reduce({ url: parameter.url, value })];
    });
    const required = ofPlace.filter((parameter) => parameter.required === true).map(({ name }) => name);
    const schema = { properties: Object.fromEntries(properties), ...(required.length > 0 && { required }) };
    return [[place, schema]];
  });
  return Object.fromEntries(places);
}

/** The schemas of a body by media type; empty for a body that the document does not describe. */
function contentFacts(source: SpecSource, schemas: SchemaCollector, located: Located): JsonObject {
  const content = source.members(source.member(located, 'content'));
  return Object.fromEntries(
    content.map(([mediaType, { url, value }]) => {
      const schema = isObject(value) ? value['schema'] : undefined;
      return [mediaType, schema === undefined ? {} : schemas.reduce({ url, value: schema })];
    }),
  );
}
