import { decodePage } from './decode-page.ts';
import { describePage } from './describe-page.ts';
import { readOEmbed } from './o-embed.ts';
import type { PageResult, PageTask } from './page-task.ts';
import { readPage } from './read-page.ts';

/** Reads a page or an oEmbed response. The result is empty when the text cannot be read. */
export async function performPageTask(task: PageTask): Promise<PageResult> {
  const text = decodePage(Buffer.from(task.body, 'base64'), task.contentType);
  try {
    return task.kind === 'html'
      ? describePage(readPage(text), task.url)
      : readOEmbed(text, task.contentType, task.url);
  } catch {
    return { properties: {}, images: [] };
  }
}
