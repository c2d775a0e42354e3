import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { observeEventLoop } from './event-loop-lag.ts';
import { createMetrics } from './metrics.ts';

describe('createMetrics', () => {
  it('renders metrics of the process and the event loop lag', async () => {
    const metrics = await createMetrics();
    const stop = observeEventLoop(metrics);
    const lagIn = (text: string) =>
      Number(/^server_event_loop_lag_seconds\{percentile="100"\} (\S+)$/m.exec(text)?.[1]);
    const text = await eventually('a lag above zero', async () => {
      const shown = await metrics.render();
      return lagIn(shown) > 0 && shown;
    });
    stop();
    assert.match(text, /^process_resident_memory_bytes \d+/m);
    assert.match(metrics.contentType, /text\/plain/);
  });
});
