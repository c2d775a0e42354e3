import type { Clock } from '../../kernel/clock.ts';
import { type LongText, TextBuilder } from '../../kernel/http/index.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import type { QueryResponse } from './key-query.ts';

/** Returns the response to a key query as JSON. Works in time slices, because the text may have several megabytes. */
export async function queryText(response: QueryResponse, clock: Clock): Promise<string | LongText> {
  const slices = new TimeSlices(clock);
  const text = new TextBuilder();
  let sectionStart = '{';
  for (const [section, entries] of Object.entries(response)) {
    text.add(`${sectionStart}"${section}":{`);
    sectionStart = '},';
    let comma = '';
    for (const [name, value] of Object.entries(entries as Record<string, unknown>)) {
      text.add(`${comma}${JSON.stringify(name)}:${JSON.stringify(value)}`);
      comma = ',';
      await slices.pauseIfDue();
    }
  }
  text.add('}}');
  return text.finish();
}
