import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Route } from '../../src/kernel/http/index.ts';
import { isThorough } from '../support/inputs/thoroughness.ts';
import { Answers } from './answers.ts';
import { fillings, largestBody, largestForms, limitsEntries, overfullBody } from './largest-bodies.ts';
import { largestQueries } from './largest-queries.ts';
import { refusingRoutes } from './refusing-routes.ts';
import { type DrivenRequest, nameOf, RouteDriver } from './route-driver.ts';

/** Maximum number of bytes of the body of a route that has no limit of its own. */
const defaultLimit = 512 * 1024;

/** Bytes of the body that is sent with the longest queries. */
const bodyWithQuery = 500;

const mebibyte = 2 ** 20;

/** Ways to fill bodies: all of them only in a thorough run, because that takes two minutes. */
const selectedFillings = Object.entries(fillings).filter(([name]) => isThorough || name === 'list');

describe('the limits of 200 ms of CPU in all and 50 ms without a pause, for one request', () => {
  let driver: RouteDriver;
  before(async () => {
    driver = await RouteDriver.open();
  });
  after(() => driver.stop());

  /** Sends requests to all routes that `requestsTo` makes requests for. @returns the answers */
  async function drive(
    requestsTo: (route: Route) => Generator<readonly [what: string, DrivenRequest], void, string>,
  ): Promise<Answers> {
    const excesses: string[] = [];
    const answers = new Answers();
    for (const route of driver.routes) {
      const requests = requestsTo(route);
      for (let next = requests.next(''); !next.done; ) {
        const [what, driven] = next.value;
        const { answer, excess } = await driver.drive(route, what, driven);
        answers.add(nameOf(route), what, answer);
        if (excess !== undefined) excesses.push(excess);
        next = requests.next(answer);
      }
    }
    assert.deepEqual(excesses, []);
    return answers;
  }

  it('stays below the limits of CPU time for the longest queries of each route', async () => {
    const answers = await drive(function* (route) {
      const { contract } = route;
      if (contract.bodyMode === 'form' || contract.bodyMode === 'stream') return;
      const values = driver.valuesOf(route);
      const body =
        contract.body === undefined
          ? {}
          : { body: largestBody(contract, bodyWithQuery, fillings['members']!, values) };
      for (const [what, query] of largestQueries(contract, values)) yield [what, { query, ...body }];
    });
    assert.deepEqual(answers.unexpected(), []);
    assert.ok(answers.routeCount > 190, `${answers.routeCount} routes`);
  });

  it('stays below the limits of CPU time for the largest forms of each route', async () => {
    const answers = await drive(function* (route) {
      const { contract } = route;
      if (contract.bodyMode !== 'form') return;
      const type = 'application/x-www-form-urlencoded';
      const values = driver.valuesOf(route);
      const [query] = largestQueries(contract, values).values();
      for (const [what, body] of largestForms(contract, values))
        yield [what, { body, type, ...(query && { query }) }];
    });
    assert.deepEqual(answers.unexpected(), []);
    assert.ok(answers.routeCount >= 28, `${answers.routeCount} routes`);
  });

  it('stays below the limits of CPU time for the largest uploads', async () => {
    const answers = await drive(function* ({ contract: { bodyMode, bodyLimit = 0, path } }) {
      if (bodyMode !== 'stream') return;
      const body = Buffer.alloc(Math.min(bodyLimit, mebibyte), 'x');
      const type = String(path).includes('rendezvous') ? 'text/plain' : 'image/png';
      yield ['the largest body', { body, type, times: Math.floor(bodyLimit / body.length) }];
    });
    assert.deepEqual(answers.unexpected(), []);
    assert.equal(answers.routeCount, 8);
  });

  it('stays below the limits of CPU time for bodies with more entries of lists and maps than each route accepts', async () => {
    const answers = await drive(function* ({ contract }) {
      const { bodyMode = 'json', bodyLimit = defaultLimit, operationId = '' } = contract;
      if (!limitsEntries(contract) || bodyMode !== 'json' || measuredElsewhere.has(operationId)) return;
      yield ['an overfull body', { body: overfullBody(contract, bodyLimit) }];
    });
    assert.deepEqual(answers.notRefusedAsTooLarge(), []);
    assert.ok(answers.routeCount > 20, `${answers.routeCount} routes`);
  });

  for (const [name, filling] of selectedFillings) {
    it(`stays below the limits of CPU time for the largest bodies of each route, filled with ${name}`, async () => {
      const answers = await drive(function* (route) {
        const { contract } = route;
        const { body, bodyMode = 'json', bodyLimit = defaultLimit, operationId = '' } = contract;
        if (body === undefined || bodyMode !== 'json' || measuredElsewhere.has(operationId)) return;
        yield [`a body of ${name} in all fields`, { body: largestBody(contract, bodyLimit, filling) }];
        const values = driver.valuesOf(route);
        const [query] = largestQueries(contract, values).values();
        // Where the content has a limit of its own, such as the 64 KiB of an event, a smaller body follows.
        for (let limit = bodyLimit, answer = tooLarge; answer === tooLarge && limit > 1_000; limit /= 8) {
          const largest = largestBody(contract, limit, filling, values);
          answer = yield [`${largest.length} bytes of ${name}`, { body: largest, ...(query && { query }) }];
        }
      });
      assert.deepEqual(answers.unexpected(), []);
      assert.ok(answers.routeCount > 100, `${answers.routeCount} routes`);
    });
  }

  it('expects refusals only of routes that exist', () => {
    const names = driver.routes.map(nameOf);
    const unknown = refusingRoutes.filter(({ route }) => !names.some((name) => route.test(name)));
    assert.deepEqual(unknown, []);
  });
});

const tooLarge = '413 M_TOO_LARGE';

/** Operations whose largest bodies test/cost/large-transactions.test.ts sends, with the same limits. */
const measuredElsewhere: ReadonlySet<string> = new Set(['sendTransaction']);
