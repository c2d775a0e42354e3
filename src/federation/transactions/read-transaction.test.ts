import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import { readTransaction } from './transactions.ts';

describe('readTransaction validates a received transaction', () => {
  it('returns lists within the limits or throws a MatrixError for arbitrary input', () => {
    const list = fc.oneof(
      fc.array(fc.constantFrom(null, {}, 'x'), { maxLength: 120 }),
      fc.jsonValue({ maxDepth: 1 }),
    );
    const body = fc.record(
      {
        origin: fc.constantFrom('a.example', 'b.example', 5, null),
        pdus: list,
        edus: list,
        more: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 300 }), body, (txnId, transaction) => {
        try {
          const { pdus, edus } = readTransaction('a.example', txnId, transaction as JsonObject);
          assert.ok(pdus.length <= 50 && edus.length <= 100);
          assert.ok(txnId.isWellFormed() && !txnId.includes('\0') && txnId.length <= 255);
          assert.deepEqual([pdus, edus], [transaction.pdus ?? [], transaction.edus ?? []]);
        } catch (error) {
          assert.ok(error instanceof MatrixError, String(error));
        }
      }),
    );
  });

  it('returns the lists of the transaction, and an empty list for an absent list', () => {
    assert.deepEqual(readTransaction('a.example', '1', {}), { pdus: [], edus: [] });
    const body = { origin: 'a.example', pdus: [1], edus: [2] };
    assert.deepEqual(readTransaction('a.example', '1', body), { pdus: [1], edus: [2] });
  });
});
