import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Route } from '../../src/kernel/http/index.ts';
import { isThorough } from '../support/inputs/thoroughness.ts';
import { fillings, largestBody, largestForms, overfullBody } from './largest-bodies.ts';
import { largestQueries } from './largest-queries.ts';
import { type DrivenRequest, RouteDriver } from './route-driver.ts';

/** Bytes of the body of a route that has no limit of its own. */
const defaultLimit = 512 * 1024;

const mebibyte = 2 ** 20;

/** Ways to fill bodies: all of them only in a thorough run, because that takes two minutes. */
const selectedFillings = Object.entries(fillings).filter(([name]) => isThorough || name === 'list');

describe('the limits of 200 ms of CPU in all and 50 ms without a pause, for one request', () => {
  let driver: RouteDriver;
  before(async () => {
    driver = await RouteDriver.open();
  });
  after(() => driver.stop());

  /** Sends requests to all routes that `requestsTo` makes requests for. */
  async function drive(requestsTo: (route: Route) => Iterable<readonly [what: string, DrivenRequest]>) {
    const excesses: string[] = [];
    let count = 0;
    for (const route of driver.routes) {
      for (const [what, driven] of requestsTo(route)) {
        count++;
        const excess = await driver.excess(route, what, driven);
        if (excess !== undefined) excesses.push(excess);
      }
    }
    assert.deepEqual(excesses, []);
    return count;
  }

  it('stays below the limits of CPU time for the longest queries of each route', async () => {
    const count = await drive(function* ({ contract }) {
      const body = contract.body === undefined ? {} : { body: Buffer.from('{}') };
      if (contract.bodyMode === 'form' || contract.bodyMode === 'stream') return;
      for (const [what, query] of largestQueries(contract)) yield [what, { query, ...body }];
    });
    assert.ok(count > 120, `${count} queries`);
  });

  it('stays below the limits of CPU time for the largest forms of each route', async () => {
    const count = await drive(function* ({ contract }) {
      if (contract.bodyMode !== 'form') return;
      const type = 'application/x-www-form-urlencoded';
      for (const [what, body] of largestForms(contract)) yield [what, { body, type }];
    });
    assert.ok(count >= 8, `${count} forms`);
  });

  it('stays below the limits of CPU time for the largest uploads, with 5 ms more for each MiB above 20', async () => {
    const count = await drive(function* ({ contract: { bodyMode, bodyLimit = 0 } }) {
      if (bodyMode !== 'stream') return;
      const body = Buffer.alloc(mebibyte, 'x');
      yield ['the largest body', { body, type: 'image/png', times: Math.floor(bodyLimit / mebibyte) }];
    });
    assert.equal(count, 2);
  });

  it('stays below the limits of CPU time for bodies with more entries of lists and maps than each route accepts', async () => {
    const count = await drive(function* ({ contract }) {
      const { body, bodyMode = 'json', bodyLimit = defaultLimit, operationId = '' } = contract;
      if (body === undefined || bodyMode !== 'json' || measuredElsewhere.has(operationId)) return;
      yield ['an overfull body', { body: overfullBody(contract, bodyLimit) }];
    });
    assert.ok(count > 70, `${count} routes`);
  });

  for (const [name, filling] of selectedFillings) {
    it(`stays below the limits of CPU time for the largest bodies of each route, filled with ${name}`, async () => {
      const count = await drive(function* ({ contract }) {
        const { body, bodyMode = 'json', bodyLimit = defaultLimit, operationId = '' } = contract;
        if (body === undefined || bodyMode !== 'json' || measuredElsewhere.has(operationId)) return;
        yield [`a body of ${name}`, { body: largestBody(contract, bodyLimit, filling) }];
      });
      assert.ok(count > 70, `${count} routes`);
    });
  }
});

/** Operations whose largest bodies test/cost/large-transactions.test.ts sends, for the same limit. */
const measuredElsewhere: ReadonlySet<string> = new Set(['sendTransaction']);
