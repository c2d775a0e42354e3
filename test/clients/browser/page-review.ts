import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

/** Folder for screenshots of the pages, for review by developers; none are taken when it is not set. */
const pictures = process.env['HEARTH_TEST_PICTURES'];

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const desktopViewport = { width: 1280, height: 860 };
const phone = { width: 390, height: 800 };

/** Checks pages with axe in both color schemes and on a phone, and takes pictures of them. */
export class PageReview {
  readonly #page: Page;
  readonly #prefix: string;
  #pictureNumber = 0;

  /** @param prefix begins the names of the pictures */
  constructor(page: Page, prefix: string) {
    this.#page = page;
    this.#prefix = prefix;
  }

  /** Checks the page that the browser shows. @param name of the page, for pictures and errors */
  async checkView(name: string): Promise<void> {
    const page = this.#page;
    const views = [
      ['light', 'light', desktopViewport],
      ['dark', 'dark', desktopViewport],
      ['phone', 'dark', phone],
    ] as const;
    for (const [view, colorScheme, size] of views) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      const width = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
      assert.ok(width <= 0, `the page ${name} is wider than the window of a ${view}`);
      assert.deepEqual(await this.#violations(), [], `${name}, ${view}`);
      if (!pictures) continue;
      const file = `${this.#prefix}-${this.#pictureNumber}-${name}-${view}.png`;
      await page.screenshot({ path: join(pictures, file), fullPage: true });
    }
    this.#pictureNumber += 1;
    await page.setViewportSize(desktopViewport);
  }

  async #violations(): Promise<readonly string[]> {
    if (!(await this.#page.evaluate('Boolean(globalThis.axe)'))) await this.#page.evaluate(axe);
    return this.#page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html + ' ' + node.failureSummary)))`);
  }
}
