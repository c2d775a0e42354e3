import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createKernelServer } from '../../../../test/support/servers/kernel-server.ts';
import type { HttpServer } from '../server.ts';
import { Readiness, readinessRoute } from './readiness.ts';

describe('GET /health/ready', () => {
  let server: HttpServer;
  let base = '';
  let problem: string | undefined;
  const readiness = new Readiness();
  const ready = async () => {
    const response = await fetch(`${base}/health/ready`);
    return [response.status, await response.text()];
  };

  before(async () => {
    server = createKernelServer({ routes: [readinessRoute(readiness, async () => problem)] });
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));

  it('answers 503 while the server starts, cannot write or stops, and otherwise 200', async () => {
    assert.deepEqual(await ready(), [503, 'The server is starting']);
    readiness.started();
    assert.deepEqual(await ready(), [200, 'Ready']);
    problem = 'Cannot write: the disk is full';
    assert.deepEqual(await ready(), [503, problem]);
    problem = undefined;
    readiness.stopping();
    assert.deepEqual(await ready(), [503, 'The server is stopping']);
    readiness.started();
    assert.deepEqual(
      await ready(),
      [503, 'The server is stopping'],
      'a start that ends late changes nothing',
    );
  });
});
