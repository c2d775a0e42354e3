import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../protocol/index.ts';
import type { FederationRequest } from '../requests/request.ts';
import { TransactionsApi } from './transactions-api.ts';

function openApi(response: JsonObject) {
  const requests: FederationRequest[] = [];
  const request = async (sent: FederationRequest) => {
    requests.push(sent);
    return response;
  };
  return { api: new TransactionsApi({ request }), requests };
}

describe('TransactionsApi', () => {
  it('sends the given text under the transaction id, with long retries', async () => {
    const { api, requests } = openApi({ pdus: {} });
    assert.equal((await api.send('a.example', 'a/1', '{"pdus":[]}')).size, 0);
    const [{ method, path, bodyText, retry }] = requests as [FederationRequest];
    assert.deepEqual(
      [method, path, bodyText, retry],
      ['PUT', '/_proto/federation/v1/send/a%2F1', '{"pdus":[]}', 'long'],
    );
  });

  it('returns the events that the other server rejected, and bounds their error messages', async () => {
    const pdus = {
      $a: {},
      $b: { error: 'no' },
      $c: { error: 'x'.repeat(9_999) },
      $d: { error: 5 },
      $e: null,
    };
    const rejections = await openApi({ pdus }).api.send('a.example', '1', '{}');
    assert.deepEqual([...rejections.keys()], ['$b', '$c']);
    assert.deepEqual([rejections.get('$b'), rejections.get('$c')?.length], ['no', 500]);
  });

  it('accepts any successful response (property)', async () => {
    const anything = fc.dictionary(fc.constantFrom('pdus', 'x'), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(anything, async (answer) => {
        const rejections = await openApi(answer as JsonObject).api.send('a.example', '1', '{}');
        for (const error of rejections.values()) assert.equal(typeof error, 'string');
      }),
    );
  });
});
