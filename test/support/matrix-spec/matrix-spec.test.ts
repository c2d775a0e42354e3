import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { childOf, isObject, type Place } from './documents.ts';
import { documents, findOperation, type Operation, operations, validateResponse } from './matrix-spec.ts';

const METHODS = ['get', 'put', 'post', 'delete', 'head', 'options', 'patch'];
const entriesOf = (value: unknown): [string, unknown][] => (isObject(value) ? Object.entries(value) : []);

/** The value of an example, with references replaced and `allOf` merged, as the specification builds its pages. */
function exampleAt(place: Place, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((element) => exampleAt(place, element));
  if (!isObject(value)) return value;
  const { $ref: reference, allOf, ...own } = value;
  const merged: Record<string, unknown> = {};
  if (typeof reference === 'string') {
    const target = documents.document(new URL(reference, place));
    const referred = exampleAt(new URL(reference, place), target);
    if (Array.isArray(referred)) return referred;
    Object.assign(merged, referred);
  }
  if (Array.isArray(allOf)) for (const part of allOf) Object.assign(merged, exampleAt(place, part));
  for (const [key, child] of Object.entries(own)) merged[key] = exampleAt(place, child);
  return merged;
}

interface Example {
  readonly operation: Operation;
  readonly status: number;
  readonly body: unknown;
}

function examplesOf(operation: Operation): Example[] {
  const responses = documents.resolve(childOf(operation.place, 'responses'));
  return entriesOf(responses.value).flatMap(([status]) => {
    const examples = documents.resolve(
      childOf(responses.place, status, 'content', 'application/json', 'examples'),
    );
    return entriesOf(examples.value).map(([name]) => {
      const { place, value: example } = documents.resolve(childOf(examples.place, name));
      const body = exampleAt(place, isObject(example) ? example['value'] : undefined);
      return { operation, status: Number(status.replace('XX', '00')), body };
    });
  });
}

/** A path that fits a template, with a value for each parameter that occurs in real requests. */
const concrete = (template: string): string => template.replace(/\{[^}]*\}/g, '%21a%2Fb:example.org');

describe('the list of operations', () => {
  it('has every operation of every file', () => {
    const expected = [...new Set(operations().map(({ place }) => place.href.split('#', 1)[0]!))].flatMap(
      (file) =>
        entriesOf(documents.resolve(new URL('#/paths', file)).value).flatMap(([path, methods]) =>
          entriesOf(methods)
            .filter(([method]) => METHODS.includes(method))
            .map(([method, operation]) => {
              const { operationId } = operation as { operationId?: string };
              const server = documents.resolve(new URL('#/servers/0/variables/basePath/default', file)).value;
              return `${operationId} ${method.toUpperCase()} ${server}${path}`;
            }),
        ),
    );
    const listed = operations().map(({ operationId, method, path }) => `${operationId} ${method} ${path}`);
    assert.deepEqual(listed.toSorted(), expected.toSorted());
    assert.ok(listed.length > 200, `${listed.length} operations`);
  });

  it('knows the APIs', () => {
    const apis = new Set(operations().map(({ api }) => api));
    assert.deepEqual([...apis].toSorted(), [
      'application-service',
      'client-server',
      'identity',
      'push-gateway',
      'server-server',
    ]);
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
    it(`${method} ${path}: ${operationId}`, () => {
      assert.equal(findOperation(method, path)?.operationId, operationId);
    });
  }

  it('finds every operation by a path that fits it', () => {
    for (const { method, path, operationId } of operations()) {
      assert.equal(findOperation(method, concrete(path))?.operationId, operationId);
    }
  });
});

describe('validateResponse', () => {
  const whoami = '/_matrix/client/v3/account/whoami';
  const problems = (status: number, body: unknown, path = whoami) =>
    validateResponse('GET', path, status, body).problems;

  it('accepts what is as specified', () => {
    assert.deepEqual(validateResponse('GET', whoami, 200, { user_id: '@a:b' }), {
      operationId: 'getTokenOwner',
      problems: [],
    });
  });

  it('tells what is not', () => {
    assert.match(problems(200, {})[0] ?? '', /user_id/);
    assert.match(problems(200, { user_id: 5 })[0] ?? '', /\/user_id must be string/);
    assert.match(problems(200, undefined)[0] ?? '', /no JSON/);
    assert.match(problems(201, { user_id: '@a:b' })[0] ?? '', /201 is not documented/);
  });

  it('follows references into other files', () => {
    const body = { next_batch: 's', rooms: { join: { '!a:b': { timeline: { events: [{ type: 'x' }] } } } } };
    const verdict = validateResponse('GET', '/_matrix/client/v3/sync', 200, body);
    assert.ok(verdict.problems.some((problem) => problem.includes('/timeline/events/0')));
  });

  it('takes errors in the standard form everywhere, and only so', () => {
    assert.deepEqual(problems(418, { errcode: 'M_TEAPOT', error: 'Short and stout' }), []);
    assert.notDeepEqual(problems(418, { message: 'oops' }), []);
    assert.notDeepEqual(problems(500, undefined), []);
    assert.notDeepEqual(problems(404, { message: 'oops' }, '/_matrix/client/v9/nothing'), []);
    assert.deepEqual(problems(404, undefined, '/index.html'), []);
  });

  it('leaves media alone', () => {
    const path = '/_matrix/client/v1/media/download/example.org/abc';
    assert.deepEqual(validateResponse('GET', path, 200, undefined), {
      operationId: 'getContentAuthed',
      problems: [],
    });
  });
});

describe("the specification's own examples", () => {
  const examples = operations().flatMap(examplesOf);

  it('are many', () => assert.ok(examples.length > 250, `${examples.length} examples`));

  it('fit their schemas', () => {
    const bad = examples.flatMap(({ operation, status, body }) => {
      const { problems } = validateResponse(operation.method, concrete(operation.path), status, body);
      return problems.map((problem) => `${operation.operationId} ${status}: ${problem}`);
    });
    assert.deepEqual(bad, []);
  });

  it('no longer fit when what is required is taken away', () => {
    const login = operations().find(({ operationId }) => operationId === 'login')!;
    const [example] = examplesOf(login).filter(({ status }) => status === 200);
    const { access_token: _token, ...rest } = example!.body as Record<string, unknown>;
    assert.equal(validateResponse(login.method, login.path, 200, rest).problems.length, 1);
  });
});
