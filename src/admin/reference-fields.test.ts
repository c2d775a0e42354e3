import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { adminApiDescription } from '../../scripts/admin-api.ts';
import { routesOfServer } from '../../scripts/running-routes.ts';
import {
  type FieldPaths,
  type FieldSchema,
  pathsOfNotation,
  pathsOfSchema,
} from './test/documented-fields/field-paths.ts';
import { documentedEndpoints } from './test/documented-fields/index.ts';

/** The places where an endpoint has fields. */
const places = ['query', 'body', 'response'] as const;

type Place = (typeof places)[number];

/** The fields of the query, body and response of one endpoint. */
type EndpointFields = Readonly<Record<Place, FieldPaths>>;

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: { readonly '2XX': { readonly content: Content } };
}

type Content = Readonly<Record<string, { readonly schema: FieldSchema }>>;

describe('fields of the admin API', () => {
  let served: ReadonlyMap<string, EndpointFields>;
  before(async () => {
    const { paths } = JSON.parse(adminApiDescription(await routesOfServer())) as {
      paths: Record<string, Record<string, Operation>>;
    };
    served = new Map(
      Object.entries(paths).flatMap(([path, operations]) =>
        Object.entries(operations).map(([method, operation]) => [
          `${method.toUpperCase()} ${path.replace('/_synapse/admin/', '').replaceAll(/\{\w+\}/g, '{}')}`,
          fieldsOfOperation(operation),
        ]),
      ),
    );
  });

  /** Calls `compare` for the query, body and response of each endpoint. @returns the fields that it finds */
  const fieldsWhere = (
    compare: (documented: FieldPaths, contract: FieldPaths, place: Place) => Iterable<string>,
  ): string[] =>
    Object.entries(documentedEndpoints).flatMap(([endpoint, fields]) =>
      places.flatMap((place) => {
        const found = compare(
          pathsOfNotation(fields[place] ?? ''),
          served.get(endpoint)?.[place] ?? new Map(),
          place,
        );
        return [...found].map((field) => `${endpoint}: ${place} ${field}`);
      }),
    );

  /** Returns the fields that the endpoints list under `kind`. */
  const listedFields = (kind: 'ours' | 'missing'): string[] =>
    Object.entries(documentedEndpoints).flatMap(([endpoint, fields]) =>
      Object.keys(fields[kind] ?? {}).map((field) => `${endpoint}: ${field}`),
    );

  it('has every field that the documentation of the reference server names, except those that are listed with a reason', () => {
    const missing = fieldsWhere((documented, contract) => fieldsWithout(documented, contract));
    assert.deepEqual(missing.sort(), listedFields('missing').sort());
  });

  it('has no field that the documentation does not name, except those that are listed as fields of this server alone', () => {
    const ours = fieldsWhere((documented, contract) => fieldsWithout(contract, documented));
    assert.deepEqual(ours.sort(), listedFields('ours').sort());
  });

  it('declares as always present every response field that the documentation says is always present', () => {
    const optional = fieldsWhere((documented, contract, place) =>
      place === 'response' ? alwaysPresent(documented).filter((field) => contract.get(field) === false) : [],
    );
    assert.deepEqual(optional, []);
  });

  it('does not require a field of a request that the documentation says is optional', () => {
    const required = fieldsWhere((documented, contract, place) =>
      place === 'response' ? [] : alwaysPresent(contract).filter((field) => documented.get(field) === false),
    );
    assert.deepEqual(required, []);
  });
});

/** Returns the fields of `paths` that `others` do not have. */
const fieldsWithout = (paths: FieldPaths, others: FieldPaths) =>
  [...paths.keys()].filter((field) => !others.has(field));

/** Returns the fields that are always present. */
const alwaysPresent = (paths: FieldPaths) =>
  [...paths].filter(([, isAlways]) => isAlways).map(([field]) => field);

function fieldsOfOperation({ parameters = [], requestBody, responses }: Operation): EndpointFields {
  const query = parameters.filter((parameter) => parameter.in === 'query');
  return {
    query: new Map(query.map(({ name, required }) => [name, required])),
    body: pathsOfContent(requestBody?.content),
    response: pathsOfContent(responses['2XX'].content),
  };
}

const pathsOfContent = (content: Content | undefined): FieldPaths =>
  pathsOfSchema(content?.['application/json']?.schema ?? {});
