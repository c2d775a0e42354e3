import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readSchemas, type Schema } from './facts.ts';
import { findOperation, type Operation, operations, validateResponse } from './matrix-spec.ts';
import { brokenSamples, sampleOf } from './samples.ts';
import { schemaProblems } from './validators.ts';

/** A path that fits a template, with a value for each parameter that occurs in real requests. */
const concrete = (template: string): string => template.replace(/\{[^}]*\}/g, '%21a%2Fb:example.org');

/** The responses of an operation that are always JSON, with the status as a number. */
function jsonResponses({ responses }: Operation): { status: number; schema: Schema }[] {
  return Object.entries(responses).flatMap(([status, content]) => {
    const schema = Object.keys(content).length === 1 ? content['application/json'] : undefined;
    return schema === undefined ? [] : [{ status: Number(status.replace('XX', '00')), schema }];
  });
}

/** All schemas of parameters, request bodies and responses, with the names that failures show. */
const schemas = operations().flatMap(({ operationId, parameters = {}, body = {}, responses }) =>
  Object.entries({ ...parameters, body, ...responses }).flatMap(([place, value]) => {
    const byMediaType = place in parameters ? { parameters: value as Schema } : value;
    return Object.entries(byMediaType as Record<string, Schema>).map(([kind, schema]) => ({
      name: `${operationId} ${place} ${kind}`,
      schema,
    }));
  }),
);

describe('data about the specification', () => {
  it('has the number of operations that each API of the specification has', () => {
    const counts: Record<string, number> = {};
    for (const { api } of operations()) counts[api] = (counts[api] ?? 0) + 1;
    assert.deepEqual(counts, {
      'client-server': 166,
      'server-server': 36,
      'application-service': 9,
      'push-gateway': 1,
      identity: 23,
    });
  });

  it('has the number of responses, request bodies and parameters that the specification has', () => {
    const count = (find: (operation: Operation) => object | undefined) =>
      operations().flatMap((operation) => Object.keys(find(operation) ?? {})).length;
    const counts = [
      count(({ responses }) => responses),
      count(({ body }) => body),
      count(({ parameters }) => parameters),
    ];
    assert.deepEqual(counts, [590, 101, 204]);
  });

  it('has schemas that JSON Schema allows', () => {
    const ajv = new Ajv2020({ strict: false });
    const namedSchemas = Object.entries(readSchemas()).map(([name, schema]) => ({ name, schema }));
    const invalid = [...schemas, ...namedSchemas].filter(({ schema }) => ajv.validateSchema(schema) !== true);
    assert.deepEqual(
      invalid.map(({ name }) => name),
      [],
    );
  });

  it('has each method and path once', () => {
    const requests = operations().map(({ method, path }) => `${method} ${path.replace(/\{[^}]*\}/g, '{}')}`);
    assert.deepEqual(requests.toSorted(), [...new Set(requests)].sort());
  });

  it('declares the parameters of every path', () => {
    for (const { operationId, path, parameters } of operations()) {
      const inTemplate = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name);
      const declared = Object.keys((parameters?.path?.['properties'] ?? {}) as object);
      assert.deepEqual(declared.toSorted(), inTemplate.toSorted(), operationId);
    }
  });

  it('documents a success or a redirect of every operation', () => {
    const withoutSuccess = operations().filter(
      ({ responses }) => !Object.keys(responses).some((status) => /^[23]/.test(status)),
    );
    assert.deepEqual(withoutSuccess, []);
  });

  it('refers to each named schema and to no other', () => {
    const namedSchemas = readSchemas();
    const texts = JSON.stringify([operations(), namedSchemas]).matchAll(/"\$ref":"([^"]*)"/g);
    assert.deepEqual(
      [...new Set([...texts].map(([, name]) => name))].sort(),
      Object.keys(namedSchemas).sort(),
    );
  });
});

describe('findOperation', () => {
  const cases: [method: string, path: string, operationId: string | undefined][] = [
    ['PUT', '/_matrix/client/v3/rooms/!a:b/send/m.room.message/1', 'sendMessage'],
    ['put', '/_proto/client/v3/rooms/!a:b/send/m.room.message/1?ts=5', 'sendMessage'],
    ['PUT', '/_matrix/client/v3/rooms/!a:b/state/m.room.name/', 'setRoomStateWithKey'],
    ['GET', '/_matrix/client/v3/rooms/!a:b/state', 'getRoomState'],
    ['GET', '/_matrix/client/v3/pushrules/', 'getPushRules'],
    ['GET', '/_proto/federation/v1/version', 'getVersion'],
    ['GET', '/.well-known/proto/server', 'getWellKnown'],
    ['GET', '/_protocol/client/v3/sync', undefined],
    ['GET', '/_matrix/client/v3/rooms/!a:b/send/m.room.message/1', undefined],
    ['GET', '/_matrix/client/v9/sync', undefined],
    ['GET', '/', undefined],
  ];
  for (const [method, path, operationId] of cases) {
    it(`finds ${operationId ?? 'no operation'} for ${method} ${path}`, () => {
      assert.equal(findOperation(method, path)?.operationId, operationId);
    });
  }

  it('finds every operation by a path that fits its template', () => {
    for (const { method, path, operationId } of operations()) {
      assert.equal(findOperation(method, concrete(path))?.operationId, operationId);
    }
  });
});

describe('validateResponse', () => {
  const whoami = '/_matrix/client/v3/account/whoami';
  const problems = (status: number, body: unknown, path = whoami) =>
    validateResponse('GET', path, status, body).problems;

  it('accepts a response that fits its schema', () => {
    assert.deepEqual(validateResponse('GET', whoami, 200, { user_id: '@a:b' }), {
      operationId: 'getTokenOwner',
      problems: [],
    });
  });

  it('reports missing and mistyped fields, a missing body and an undocumented status', () => {
    assert.match(problems(200, {})[0] ?? '', /user_id/);
    assert.match(problems(200, { user_id: 5 })[0] ?? '', /\/user_id must be string/);
    assert.match(problems(200, undefined)[0] ?? '', /no JSON/);
    assert.match(problems(201, { user_id: '@a:b' })[0] ?? '', /201 is not documented/);
  });

  it('reports a problem inside a schema that others refer to', () => {
    const body = { next_batch: 's', rooms: { join: { '!a:b': { timeline: { events: [{ type: 'x' }] } } } } };
    const verdict = validateResponse('GET', '/_matrix/client/v3/sync', 200, body);
    assert.ok(verdict.problems.some((problem) => problem.includes('/timeline/events/0')));
  });

  it('accepts errors with any status in the standard form, and in no other form', () => {
    assert.deepEqual(problems(418, { errcode: 'M_TEAPOT', error: 'Short and stout' }), []);
    assert.notDeepEqual(problems(418, { message: 'oops' }), []);
    assert.notDeepEqual(problems(500, undefined), []);
    assert.notDeepEqual(problems(404, { message: 'oops' }, '/_matrix/client/v9/nothing'), []);
    assert.deepEqual(problems(404, undefined, '/index.html'), []);
  });

  it('accepts any body of a media download', () => {
    const path = '/_matrix/client/v1/media/download/example.org/abc';
    assert.deepEqual(validateResponse('GET', path, 200, undefined), {
      operationId: 'getContentAuthed',
      problems: [],
    });
  });

  it('rejects a response to a login without an access token', () => {
    const path = '/_matrix/client/v3/login';
    const { access_token, ...rest } = { user_id: '@a:b', access_token: 'secret', device_id: 'D' };
    assert.deepEqual(validateResponse('POST', path, 200, { access_token, ...rest }).problems, []);
    assert.equal(validateResponse('POST', path, 200, rest).problems.length, 1);
  });
});

describe('sampleOf and brokenSamples', () => {
  it('makes samples that fit their schemas, with all fields and with only the required ones', () => {
    const problems = schemas.flatMap(({ name, schema }) =>
      (['all', 'required'] as const).flatMap((fields) =>
        schemaProblems(schema, sampleOf(schema, fields)).map((problem) => `${name}, ${fields}: ${problem}`),
      ),
    );
    assert.deepEqual(problems, []);
    assert.ok(schemas.length > 800, `${schemas.length} schemas`);
  });

  it('makes samples of responses that validateResponse accepts', () => {
    const responses = operations().flatMap((operation) =>
      jsonResponses(operation).map((response) => ({ operation, ...response })),
    );
    for (const { operation, status, schema } of responses) {
      const verdict = validateResponse(
        operation.method,
        concrete(operation.path),
        status,
        sampleOf(schema, 'all'),
      );
      assert.deepEqual(verdict, { operationId: operation.operationId, problems: [] });
    }
    assert.ok(responses.length > 500, `${responses.length} responses`);
  });

  it('makes samples that do not fit once a single rule of the schema is broken', () => {
    let broken = 0;
    const accepted = schemas.flatMap(({ name, schema }) =>
      [...brokenSamples(schema, sampleOf(schema, 'all'))].flatMap(([rule, value]) => {
        broken++;
        return schemaProblems(schema, value).length > 0 ? [] : [`${name}: ${rule}`];
      }),
    );
    assert.deepEqual(accepted, []);
    assert.ok(broken > 6_000, `${broken} broken samples`);
  });
});

describe('validateResponse for the admin API', () => {
  const problemsOf = (path: string, status: number, body: unknown) =>
    validateResponse('GET', path, status, body).problems;

  it('accepts only documented fields, for paths below /_server and /_synapse', () => {
    for (const path of ['/_server/admin/v1/server_version', '/_synapse/admin/v1/server_version']) {
      assert.deepEqual(problemsOf(path, 200, { server_version: '1' }), []);
      assert.equal(problemsOf(path, 200, { server_version: '1', other: 1 }).length, 1);
      assert.equal(problemsOf(path, 200, {}).length, 1);
      assert.deepEqual(problemsOf(path, 403, { errcode: 'M_FORBIDDEN', error: 'no' }), []);
      assert.equal(problemsOf(path, 403, { error: 'no' }).length, 1);
    }
    const member = '/_server/admin/v1/rooms/!a:b/members';
    assert.equal(problemsOf(member, 200, { members: [1], total: 1 }).length, 1);
  });
});
